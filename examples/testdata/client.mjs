// The official TypeScript client: node client.mjs MODULES FILE connects to every server of a
// configuration file, one by one, and prints the names of its tools.
import fs from 'node:fs'

const [modules, file] = process.argv.slice(2)
const sdk = (name) => import(`${modules}/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`)
const [{ Client }, { StdioClientTransport }] = await Promise.all([sdk('index'), sdk('stdio')])
for (const [name, server] of Object.entries(JSON.parse(fs.readFileSync(file, 'utf8')).mcpServers)) {
  const client = new Client({ name: 'client', version: '1' })
  await client.connect(new StdioClientTransport(server))
  const { tools } = await client.listTools()
  console.log(`${name}: ${tools.map((tool) => tool.name).join(' ')}`)
  await client.close()
}
