// A client of the test network. Each argument is one thing to ask for; each answer is one
// line of JSON: {ask, ok, text, code}.
"use strict";
const dgram = require("node:dgram");
const dns = require("node:dns").promises;
const https = require("node:https");
const net = require("node:net");

// A silent peer must not hang the test; nothing that passes waits so long.
const patience = 20000;

const asks = {
  // The page at a URL, redirects followed.
  async get(url) {
    const response = await fetch(url, { signal: AbortSignal.timeout(patience) });
    return await response.text();
  },
  // The page at a URL, from the address of another host.
  via(url, host) {
    return new Promise((resolve, reject) => {
      const { hostname } = new URL(url);
      const request = https.get(url, { hostname: host, servername: hostname, headers: { Host: hostname }, agent: false }, (response) => {
        let text = "";
        response.on("data", (part) => (text += part));
        response.on("end", () => resolve(text));
      });
      request.setTimeout(patience, () => request.destroy(Object.assign(new Error("silence"), { code: "SILENT" })));
      request.on("error", reject);
    });
  },
  async lookup(name) {
    const all = await dns.lookup(name, { all: true });
    return all.map((a) => a.address).join(" ");
  },
  async resolve4(name) {
    return (await dns.resolve4(name)).join(" ");
  },
  async resolve6(name) {
    return (await dns.resolve6(name)).join(" ");
  },
  // What comes back for a word sent over TCP.
  tcp(host, port) {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host, port: Number(port) }, () => socket.write("ping"));
      socket.setTimeout(patience, () => socket.destroy(Object.assign(new Error("silence"), { code: "SILENT" })));
      socket.on("data", (data) => {
        resolve(`${data}`);
        socket.destroy();
      });
      socket.on("error", reject);
    });
  },
  udp(host, port) {
    return new Promise((resolve, reject) => {
      const socket = dgram.createSocket(net.isIPv6(host) ? "udp6" : "udp4");
      const timer = setTimeout(() => end(reject, Object.assign(new Error("silence"), { code: "SILENT" })), patience);
      const end = (settle, value) => {
        clearTimeout(timer);
        socket.close();
        settle(value);
      };
      socket.on("message", (data) => end(resolve, `${data}`));
      socket.on("error", (err) => end(reject, err));
      socket.send("ping", Number(port), host, (err) => err && end(reject, err));
    });
  },
};

// The code of the first cause that has one.
function codeOf(err) {
  for (let e = err; e; e = e.cause ?? e.errors?.[0]) {
    if (typeof e.code === "string") return e.code;
  }
  return `${err.name}: ${err.message}`;
}

(async () => {
  for (const ask of process.argv.slice(2)) {
    const [verb, ...words] = ask.split(" ");
    let answer;
    try {
      answer = { ask, ok: true, text: await asks[verb](...words), code: "" };
    } catch (err) {
      answer = { ask, ok: false, text: `${err}`, code: codeOf(err) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
})();
