// Passkeys: connect the buttons of forms with the ceremonies of allauth's script, and show what goes wrong.
"use strict";
(() => {
  const isAvailable = window.webauthnJSON.supported() && isSecureContext;
  const option = (id) => (document.getElementById(id) ? id : undefined);

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = !isAvailable;
    for (const note of document.querySelectorAll("[data-passkey-unavailable]")) note.hidden = isAvailable;
    const ceremony = form.dataset.passkey;
    // Before the script's own listener: a device must not make a passkey that is then refused for its name.
    document.getElementById(`passkey-${ceremony}`).addEventListener("click", (event) => {
      if (!form.reportValidity()) event.stopImmediatePropagation();
    });
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
      : name === "SecurityError" ? "This page is at another address than the passkeys belong to."
      : name === "Error" ? "gridcast gave no request for a passkey. Reload the page, and try again."
      : `The browser cannot use a passkey here (${name}).`;
    place.hidden = false;
  });
})();
