// A window of VS Code, as far as the extension looks at it: stands in for the modules `vscode` and its client.
"use strict";

const Module = require("node:module");

/** The extension in a window with these settings, and what it did there. */
function open(settings = {}, { folder = "/project", fails = undefined } = {}) {
  const seen = { clients: [], errors: [], commands: {}, subscriptions: [] };
  const configuration = { get: (key, otherwise) => settings[key] ?? otherwise, ...settings };
  const vscode = {
    workspace: {
      workspaceFolders: folder ? [{ uri: { fsPath: folder } }] : undefined,
      getConfiguration: (section) => (section === "deadlint" ? configuration : {}),
    },
    window: { showErrorMessage: (text) => seen.errors.push(text) },
    commands: {
      registerCommand(name, run) {
        seen.commands[name] = run;
        return { dispose() {} };
      },
    },
  };
  class LanguageClient {
    constructor(id, name, server, options) {
      Object.assign(this, { id, name, server, options, state: "made" });
      seen.clients.push(this);
    }
    async start() {
      if (fails) throw new Error(fails);
      this.state = "running";
    }
    async stop() {
      this.state = "stopped";
    }
  }
  const stands = { vscode, "vscode-languageclient/node": { LanguageClient } };
  const load = Module._load;
  Module._load = (name, ...rest) => stands[name] ?? load(name, ...rest);
  try {
    const path = require.resolve("../extension.js");
    delete require.cache[path];
    return { extension: require(path), seen, context: { subscriptions: seen.subscriptions } };
  } finally {
    Module._load = load;
  }
}

module.exports = { open };
