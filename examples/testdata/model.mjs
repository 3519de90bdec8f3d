// A model that answers nothing: node model.mjs NOTES PROGRAM [ARG]... runs a host that may ask it
// at 127.0.0.1:9999, refuses what it is asked, and notes it: the tools that the host offers too.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'

const [notes, program, ...args] = process.argv.slice(2)
const model = http.createServer((request, response) => {
  let asked = ''
  request.on('data', (part) => (asked += part))
  request.on('end', () => {
    fs.appendFileSync(notes, asked + '\n')
    // A status that no host takes for a reason to try again.
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'no model is here', type: 'invalid_request_error' } }))
  })
})
model.listen(9999, '127.0.0.1', () => {
  const host = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  host.on('error', (error) => {
    console.error(error)
    process.exit(1)
  })
  host.on('exit', (status) => process.exit(status ?? 1))
})
