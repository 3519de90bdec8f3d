// A server that tells what it can read: node looking.mjs --look=FILE. It writes each method and the answer
// to "seen" in its home folder.
import fs from 'node:fs'
import readline from 'node:readline'

const look = () => {
  try {
    return fs.readFileSync(process.argv[2].slice('--look='.length), 'utf8').trim()
  } catch (error) {
    return error.code
  }
}
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'looking', version: '1' } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [{ name: 'look', description: 'Reads the file', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: look() }] }),
}
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  fs.appendFileSync(`${process.env.HOME}/seen`, `${method} ${look()}\n`)
  if (id === undefined) return
  const answer = answers[method]
  send(answer ? { id, result: answer(params) } : { id, error: { code: -32601, message: 'not known' } })
})
