// Passkeys: connect the buttons of forms with the ceremonies of allauth's script, and show what goes wrong.
"use strict";
(() => {
  // Browsers refuse passkeys without TLS, and for addresses instead of names.
  const isAvailable = window.webauthnJSON.supported() && isSecureContext && !/^[\d.]+$|^\[/.test(location.hostname);
  const option = (id) => (document.getElementById(id) ? id : undefined);

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = !isAvailable;
    for (const note of document.querySelectorAll("[data-passkey-unavailable]")) note.hidden = isAvailable;
    const ceremony = form.dataset.passkey;
    window.allauth.webauthn.forms[`${ceremony}Form`]({ ids: {
      [ceremony]: `passkey-${ceremony}`, credential: "id_credential",
      passwordless: option("id_passwordless"), data: option("passkey-options"),
    } });
  }

  document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    const { name } = event.detail.exception;
    const place = document.querySelector("[data-passkey-error]");
    place.textContent = name === "InvalidStateError" ? "This device has a passkey of this account already."
      : name === "NotAllowedError" ? "The device did not confirm, or it took too long. Try again."
      : `The browser cannot use a passkey here (${name}).`;
    place.hidden = false;
  });
})();
