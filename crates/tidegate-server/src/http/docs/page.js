"use strict";

const form = document.getElementById("ask");
const at = (id) => document.getElementById(id);
let policies = [];

/** The header fields worth showing, in the order to show them. */
const FIELDS = [
  "retry-after",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "ratelimit-policy",
  "ratelimit",
];

async function loadPolicies() {
  const answer = await fetch("/v1/policies");
  policies = (await answer.json()).policies;
  for (const policy of policies) {
    form.policy.append(new Option(policy.name, policy.name, policy.default, policy.default));
  }
  showWords();
}

function showWords() {
  const policy = policies.find((policy) => policy.name === form.policy.value);
  const words = (policy?.limits ?? []).map((limit) => `${limit.name}: ${limit.in_words}`);
  at("words").textContent = words.join("; ");
}

/** Quotes a word for a POSIX shell. */
function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function request(verb) {
  const [policy, key, cost] = [form.policy.value, form.key.value, form.cost.value.trim()];
  if (verb === "peek") {
    const url = `/v1/peek?${new URLSearchParams({ policy, key })}`;
    return { url, init: {}, curl: `curl -i ${quoted(location.origin + url)}` };
  }
  // Digits stay a number, anything else is sent as it is for the server to judge.
  const number = /^-?\d+(\.\d+)?$/.test(cost) ? cost : JSON.stringify(cost);
  const given = cost === "" ? "" : `, "cost": ${number}`;
  const body = `{"policy": ${JSON.stringify(policy)}, "key": ${JSON.stringify(key)}${given}}`;
  const url = "/v1/check";
  const init = { method: "POST", headers: { "content-type": "application/json" }, body };
  const curl = `curl -i ${quoted(location.origin + url)} -H 'content-type: application/json' -d ${quoted(body)}`;
  return { url, init, curl };
}

function summary(decision) {
  const left = `${decision.remaining} of ${decision.limit} left of ${decision.bound_by}`;
  if (decision.allowed) {
    return decision.delay_ms > 0 ? `${left}; its turn is in ${decision.delay_ms} ms` : left;
  }
  return decision.retry_after_ms === null ? `${left}; waiting does not help` : `${left}; again in ${decision.retry_after_ms} ms`;
}

function show(curl, answer, text) {
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const decision = body?.outcome !== undefined;
  at("outcome").textContent = decision ? body.outcome : `${answer.status} ${body?.title ?? ""}`;
  at("outcome").className = decision && body.allowed ? "yes" : "no";
  at("summary").textContent = decision ? summary(body) : (body?.detail ?? text);
  at("curl").textContent = curl;
  const fields = FIELDS.filter((name) => answer.headers.has(name));
  at("fields").textContent = fields.map((name) => `${name}: ${answer.headers.get(name)}`).join("\n");
  at("body").textContent = body === undefined ? text : JSON.stringify(body, null, 2);
  at("answer").hidden = false;
}

function unreachable(error) {
  at("outcome").textContent = "No answer";
  at("outcome").className = "no";
  at("summary").textContent = String(error);
  at("answer").hidden = false;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { url, init, curl } = request(event.submitter?.value ?? "check");
  try {
    const answer = await fetch(url, init);
    show(curl, answer, await answer.text());
  } catch (error) {
    unreachable(error);
  }
});
form.policy.addEventListener("change", showWords);
loadPolicies().catch(unreachable);
