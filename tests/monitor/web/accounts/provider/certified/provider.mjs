// Run oidc-provider, a certified OpenID provider: node provider.mjs < {issuer, clients}
// The first line of standard input configures it; it prints its port as JSON, and ends when standard input does.
// Beside the provider's own paths, PUT /users/SUBJECT stores the claims of a user, and /interaction/UID takes the
// result of an interaction as JSON: who has logged in there, how and when.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const users = new Map();

function privateKey(kid, type, options) {
  const { privateKey: key } = generateKeyPairSync(type, options);
  return { ...key.export({ format: "jwk" }), kid, use: "sig" };
}

// Consent is part of the registration of the clients.
async function loadExistingGrant(ctx) {
  const { client, session, provider } = ctx.oidc;
  const known = session.grantIdFor(client.clientId);
  if (known) return provider.Grant.find(known);
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope([...ctx.oidc.requestParamOIDCScopes].join(" "));
  await grant.save();
  return grant;
}

function logoutForm(ctx, form) {
  ctx.body = form.replace("</form>", '<input type="hidden" name="logout" value="yes"/></form>');
}

function configuration(clients) {
  return {
    clients,
    cookies: { keys: ["a key of cookies in tests"] },
    claims: {
      openid: ["sub", "acr", "amr"],
      profile: ["name", "given_name", "family_name", "preferred_username"],
      email: ["email", "email_verified"],
      groups: ["groups"],
    },
    features: {
      backchannelLogout: { enabled: true },
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: true, logoutSource: logoutForm },
    },
    // Its own client refuses addresses of loopback, and waits for 2.5 s at most.
    fetch: (url, { dispatcher, signal, ...options }) => fetch(url, options),
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ ...users.get(accountId), sub: accountId }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    jwks: {
      keys: [
        privateKey("rsa", "rsa", { modulusLength: 2048 }),
        privateKey("ec", "ec", { namedCurve: "P-256" }),
        privateKey("ed", "ed25519"),
      ],
    },
    loadExistingGrant,
    pkce: { required: () => true },
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "PS256", "ES256", "EdDSA", "HS256"] },
    scopes: ["openid", "profile", "email", "groups"],
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600 },
  };
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

async function answer(provider, others, request, response) {
  const [, folder, name] = request.url.split("/");
  if (request.method === "PUT" && folder === "users") {
    users.set(decodeURIComponent(name), await bodyOf(request));
    response.writeHead(204).end();
  } else if (request.method === "POST" && folder === "interaction") {
    await provider.interactionFinished(request, response, await bodyOf(request));
  } else {
    await others(request, response);
  }
}

const lines = createInterface({ input: process.stdin });
lines.once("line", (line) => {
  const { issuer, clients } = JSON.parse(line);
  const provider = new Provider(issuer, configuration(clients));
  provider.on("server_error", (_, error) => console.error(error));
  const others = provider.callback();
  const server = createServer((request, response) => {
    answer(provider, others, request, response).catch((error) => {
      console.error(error);
      response.writeHead(500).end();
    });
  });
  server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
});
lines.once("close", () => process.exit());
