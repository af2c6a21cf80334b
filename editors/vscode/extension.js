// Starts `deadlint server` for the Python files of the window, and once more when it is asked to.
"use strict";

const os = require("node:os");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** The command of the settings, with the workspace's folder and the user's home put in. */
function command() {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? process.cwd();
  const [program, ...rest] = vscode.workspace
    .getConfiguration("deadlint")
    .get("path", ["deadlint"])
    .map((part) => part.replaceAll("${workspaceFolder}", folder).replace(/^~(?=$|[/\\])/, os.homedir()));
  return { command: program, args: [...rest, "server", "--stdio"] };
}

async function start() {
  const server = command();
  client = new LanguageClient(
    "deadlint",
    "deadlint",
    { run: server, debug: { ...server, args: [...server.args, "--debug"] } },
    {
      documentSelector: [
        { scheme: "file", language: "python" },
        { scheme: "untitled", language: "python" },
      ],
      initializationOptions: JSON.parse(JSON.stringify(vscode.workspace.getConfiguration("deadlint"))),
      synchronize: { configurationSection: "deadlint" },
    },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(
      `deadlint: \`${server.command}\` does not start (${error.message}); ` +
        "install it with `pip install 'deadlint[server]'`, or name it in the setting deadlint.path",
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("deadlint.restart", async () => {
      await stop();
      await start();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
