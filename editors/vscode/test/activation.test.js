"use strict";

const assert = require("node:assert/strict");
const os = require("node:os");
const { test } = require("node:test");
const { open } = require("./window.js");
const manifest = require("../package.json");

test("activation starts the server for Python files", async () => {
  const { extension, seen, context } = open();
  await extension.activate(context);
  const [client] = seen.clients;
  assert.equal(client.state, "running");
  assert.deepEqual(client.server.run, { command: "deadlint", args: ["server", "--stdio"] });
  assert.ok(client.options.documentSelector.every((one) => one.language === "python"));
  assert.equal(client.options.synchronize.configurationSection, "deadlint");
});

test("the command of the settings is run, with the folder put in", async () => {
  const { extension, seen, context } = open({ path: ["${workspaceFolder}/.venv/bin/python", "-m", "deadlint"] });
  await extension.activate(context);
  assert.deepEqual(seen.clients[0].server.run, {
    command: "/project/.venv/bin/python",
    args: ["-m", "deadlint", "server", "--stdio"],
  });
  const home = open({ path: ["~/bin/deadlint"] }, { folder: undefined });
  await home.extension.activate(home.context);
  assert.equal(home.seen.clients[0].server.run.command, `${os.homedir()}/bin/deadlint`);
});

test("the settings go to the server", async () => {
  const { extension, seen, context } = open({ level: "strict", ignore: ["DL202"] });
  await extension.activate(context);
  assert.equal(seen.clients[0].options.initializationOptions.level, "strict");
  assert.deepEqual(seen.clients[0].options.initializationOptions.ignore, ["DL202"]);
});

test("a server that does not start is told with what to do", async () => {
  const { extension, seen, context } = open({}, { fails: "spawn deadlint ENOENT" });
  await extension.activate(context);
  assert.match(seen.errors[0], /`deadlint` does not start .*ENOENT.*pip install 'deadlint\[server\]'/);
  await extension.deactivate();
});

test("restart stops the server and starts another; deactivation stops it", async () => {
  const { extension, seen, context } = open();
  await extension.activate(context);
  await seen.commands["deadlint.restart"]();
  assert.deepEqual(seen.clients.map((one) => one.state), ["stopped", "running"]);
  await extension.deactivate();
  assert.deepEqual(seen.clients.map((one) => one.state), ["stopped", "stopped"]);
});

test("the manifest names what the extension registers and reads", () => {
  assert.deepEqual(manifest.contributes.commands.map((one) => one.command), ["deadlint.restart"]);
  assert.deepEqual(manifest.activationEvents, ["onLanguage:python"]);
  assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, ["deadlint.path"]);
  assert.deepEqual(manifest.contributes.configuration.properties["deadlint.path"].default, ["deadlint"]);
});
