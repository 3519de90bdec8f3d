// Package egress decides what a server may reach on the network.
//
// A [Rule] is one entry of network.egress. A [Decider] holds the rules and what the names in
// them resolved to, and answers for each address that the server connects or sends to, each
// name that it asks for, and each server name that it sends on a relayed connection:
//
//	rules, err := egress.ParseRule("api.github.com:443")
//	d := egress.NewDecider(egress.Policy{Rules: rules}, hosts)
//	d.Query("api.github.com")        // Direct: the stub may ask for it
//	d.Pin("api.github.com", answer)  // what the stub may answer
//	d.Stream(answer[0] with 443)     // Relayed: the relay then asks Server
//
// It promises:
//
//   - Address rules lead to what they say, special addresses too, since a person wrote them out.
//   - A host rule, and the public mode, never lead to a special address: loopback, private,
//     link-local, cloud metadata and the rest of [Special], in whatever form it is spelled or
//     wrapped. The decision is made on the address that is connected to, never on text.
//     A rule with [AnyAddress] leads to those where hosts are, and never to cloud metadata.
//   - A host rule leads to addresses that its own name resolved to, on its own ports only.
//   - What cannot be judged (no address, port 0, a name that is no host name) is refused.
//
// It does not protect against who owns a name. The owner of a zone says which public address
// a name has, so that a rule with names: pinned, or for a port that is not relayed, leads to
// any public address that the owner likes. With a wildcard rule the owner also sees each
// name that is asked for, and can be told things that way.
package egress
