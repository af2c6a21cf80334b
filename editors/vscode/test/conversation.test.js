// The extension's command, spoken to with VS Code's own implementation of the protocol.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { test } = require("node:test");
const protocol = require("vscode-languageserver-protocol/node");
const { open } = require("./window.js");

const python = process.env.DEADLINT_PYTHON ?? "python3";
const UNSAFE = "import requests\n\n\ndef fetch(url):\n    return requests.get(url)\n";

test("diagnostics are pulled, a fix is taken, and both are of the version that is there", { timeout: 120_000 }, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "deadlint-"));
  const { extension, seen, context } = open({ path: [python, "-m", "deadlint"], level: "" }, { folder });
  await extension.activate(context);
  const [client] = seen.clients;
  const { command, args } = client.server.run;
  const server = spawn(command, args, { cwd: folder, env: { ...process.env, XDG_CACHE_HOME: folder } });
  const exited = new Promise((resolve) => server.on("exit", resolve));
  const connection = protocol.createProtocolConnection(
    new protocol.StreamMessageReader(server.stdout),
    new protocol.StreamMessageWriter(server.stdin),
  );
  try {
    connection.listen();
    const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      workspaceFolders: [{ uri: pathToFileURL(folder).href, name: "project" }],
      capabilities: {
        textDocument: { diagnostic: {}, codeAction: { resolveSupport: { properties: ["edit"] } } },
        workspace: { workspaceEdit: { documentChanges: true } },
      },
      initializationOptions: client.options.initializationOptions,
    });
    assert.ok(capabilities.diagnosticProvider.interFileDependencies);
    assert.ok(capabilities.executeCommandProvider.commands.includes("deadlint.openRule"));
    await connection.sendNotification(protocol.InitializedNotification.type, {});
    const uri = pathToFileURL(path.join(folder, "fetch.py")).href;
    await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
      textDocument: { uri, languageId: "python", version: 1, text: UNSAFE },
    });
    const report = await connection.sendRequest(protocol.DocumentDiagnosticRequest.type, { textDocument: { uri } });
    assert.deepEqual(report.items.map((one) => one.code), ["DL201"]);

    const actions = await connection.sendRequest(protocol.CodeActionRequest.type, {
      textDocument: { uri },
      range: report.items[0].range,
      context: { diagnostics: report.items },
    });
    const fix = actions.find((one) => one.title.startsWith("DL201: send it through"));
    const [change] = fix.edit.documentChanges;
    assert.deepEqual(change.textDocument, { uri, version: 1 });
    assert.ok(change.edits.some((one) => one.newText.includes("http")));
    assert.ok(actions.some((one) => one.command?.command === "deadlint.openRule"));

    await connection.sendNotification(protocol.DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version: 2 },
      contentChanges: [{ range: report.items[0].range, text: "None" }],
    });
    const after = await connection.sendRequest(protocol.DocumentDiagnosticRequest.type, {
      textDocument: { uri },
      previousResultId: report.resultId,
    });
    assert.deepEqual([after.kind, after.items], ["full", []]);

    await connection.sendRequest(protocol.ShutdownRequest.type);
    await connection.sendNotification(protocol.ExitNotification.type);
    assert.equal(await exited, 0);
  } finally {
    connection.dispose();
    server.kill();
    fs.rmSync(folder, { recursive: true, force: true });
  }
});
