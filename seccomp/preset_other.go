//go:build !amd64 && !arm64

package seccomp

// embedded has nothing on other architectures, and [Policy.Filter] refuses them.
func embedded(network, Metadata, Truncation) string { return "" }
