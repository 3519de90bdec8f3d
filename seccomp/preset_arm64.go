package seccomp

import _ "embed" // the filters of this architecture only

// The files are written by go generate and compared by TestPresets. Strings in place of an
// embed.FS: finding one costs nothing at start.
var (
	//go:embed presets/none-ignore.arm64.bpf
	noneIgnore string
	//go:embed presets/none-ignore-truncation.arm64.bpf
	noneIgnoreTruncation string
	//go:embed presets/none-refuse.arm64.bpf
	noneRefuse string
	//go:embed presets/none-refuse-truncation.arm64.bpf
	noneRefuseTruncation string
	//go:embed presets/server-ignore.arm64.bpf
	serverIgnore string
	//go:embed presets/server-ignore-truncation.arm64.bpf
	serverIgnoreTruncation string
	//go:embed presets/server-refuse.arm64.bpf
	serverRefuse string
	//go:embed presets/server-refuse-truncation.arm64.bpf
	serverRefuseTruncation string
	//go:embed presets/client-ignore.arm64.bpf
	clientIgnore string
	//go:embed presets/client-ignore-truncation.arm64.bpf
	clientIgnoreTruncation string
	//go:embed presets/client-refuse.arm64.bpf
	clientRefuse string
	//go:embed presets/client-refuse-truncation.arm64.bpf
	clientRefuseTruncation string
	//go:embed presets/internet-ignore.arm64.bpf
	internetIgnore string
	//go:embed presets/internet-ignore-truncation.arm64.bpf
	internetIgnoreTruncation string
	//go:embed presets/internet-refuse.arm64.bpf
	internetRefuse string
	//go:embed presets/internet-refuse-truncation.arm64.bpf
	internetRefuseTruncation string
	//go:embed presets/supervised-unix-ignore.arm64.bpf
	supervisedUnixIgnore string
	//go:embed presets/supervised-unix-ignore-truncation.arm64.bpf
	supervisedUnixIgnoreTruncation string
	//go:embed presets/supervised-unix-refuse.arm64.bpf
	supervisedUnixRefuse string
	//go:embed presets/supervised-unix-refuse-truncation.arm64.bpf
	supervisedUnixRefuseTruncation string
	//go:embed presets/supervised-server-ignore.arm64.bpf
	supervisedServerIgnore string
	//go:embed presets/supervised-server-ignore-truncation.arm64.bpf
	supervisedServerIgnoreTruncation string
	//go:embed presets/supervised-server-refuse.arm64.bpf
	supervisedServerRefuse string
	//go:embed presets/supervised-server-refuse-truncation.arm64.bpf
	supervisedServerRefuseTruncation string
	//go:embed presets/supervised-internet-ignore.arm64.bpf
	supervisedInternetIgnore string
	//go:embed presets/supervised-internet-ignore-truncation.arm64.bpf
	supervisedInternetIgnoreTruncation string
	//go:embed presets/supervised-internet-refuse.arm64.bpf
	supervisedInternetRefuse string
	//go:embed presets/supervised-internet-refuse-truncation.arm64.bpf
	supervisedInternetRefuseTruncation string
)

// embedded returns the instructions of a preset.
func embedded(n network, m Metadata, t Truncation) string {
	return [networkOther][MetadataRefuse + 1][TruncationByFilter + 1]string{
		networkNone: {
			MetadataIgnore: {TruncationByLandlock: noneIgnore, TruncationByFilter: noneIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: noneRefuse, TruncationByFilter: noneRefuseTruncation},
		},
		networkServer: {
			MetadataIgnore: {TruncationByLandlock: serverIgnore, TruncationByFilter: serverIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: serverRefuse, TruncationByFilter: serverRefuseTruncation},
		},
		networkClient: {
			MetadataIgnore: {TruncationByLandlock: clientIgnore, TruncationByFilter: clientIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: clientRefuse, TruncationByFilter: clientRefuseTruncation},
		},
		networkInternet: {
			MetadataIgnore: {TruncationByLandlock: internetIgnore, TruncationByFilter: internetIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: internetRefuse, TruncationByFilter: internetRefuseTruncation},
		},
		networkSupervisedUnix: {
			MetadataIgnore: {TruncationByLandlock: supervisedUnixIgnore, TruncationByFilter: supervisedUnixIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: supervisedUnixRefuse, TruncationByFilter: supervisedUnixRefuseTruncation},
		},
		networkSupervisedServer: {
			MetadataIgnore: {TruncationByLandlock: supervisedServerIgnore, TruncationByFilter: supervisedServerIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: supervisedServerRefuse, TruncationByFilter: supervisedServerRefuseTruncation},
		},
		networkSupervisedInternet: {
			MetadataIgnore: {TruncationByLandlock: supervisedInternetIgnore, TruncationByFilter: supervisedInternetIgnoreTruncation},
			MetadataRefuse: {TruncationByLandlock: supervisedInternetRefuse, TruncationByFilter: supervisedInternetRefuseTruncation},
		},
	}[n][m][t]
}
