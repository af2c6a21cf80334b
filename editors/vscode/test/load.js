// Loads an extension that is installed somewhere, with the real client and a stand-in for `vscode` that has everything:
// whether all that it needs is in the package. Prints what it exports.
"use strict";

const Module = require("node:module");

const everything = () =>
  new Proxy(class {}, {
    get: (target, key) => (key === Symbol.toPrimitive ? () => "" : key in target ? target[key] : everything()),
  });

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? everything() : load(name, ...rest));
console.log(Object.keys(require(process.argv[2])).sort().join(" "));
