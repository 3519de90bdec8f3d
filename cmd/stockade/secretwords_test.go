package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMaskArguments(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "node /srv/index.js /home/me/a --port 8080 --name=x -v", "node /srv/index.js /home/me/a --port 8080 --name=x -v"},
		{"joined", "s --api-key=abc --token=x --password= --accessKey=1", "s --api-key=masked --token=masked --password= --accessKey=masked"},
		{"apart", "s --token abc --github_token ghp_1 -password p x", "s --token masked --github_token masked -password masked x"},
		{"a flag follows", "s --token --verbose x", "s --token --verbose x"},
		{"a key that begins with a dash", "s --secret -abcDEF0123456789abcd_/+= x", "s --secret masked x"},
		{"variables", "env X_API_KEY=k TOKEN=t HOME=/h", "env X_API_KEY=masked TOKEN=masked HOME=/h"},
		{"variable as a flag's value", "s -e GITHUB_TOKEN=t --set=DB_PASSWORD=p --set=A=b", "s -e GITHUB_TOKEN=masked --set=DB_PASSWORD=masked --set=A=b"},
		{"header", "s|--header|Authorization: Bearer x|--header=X-Api-Key: y|Accept: json", "s|--header|Authorization: masked|--header=X-Api-Key: masked|Accept: json"},
		{"URL", "s postgres://u:p@h:5432/db https://t0ken@h/x --url=https://u:p@h/?api_key=k&a=b https://h/a@b", "s postgres://u:masked@h:5432/db https://masked@h/x --url=https://u:masked@h/?api_key=masked&a=b https://h/a@b"},
		{"secret URL", "s WEBHOOK_SECRET=https://h/x", "s WEBHOOK_SECRET=masked"},
		{"words that hold such a word", "s --keyboard de --monkey=x --compass=n --author me", "s --keyboard de --monkey=x --compass=n --author me"},
		{"the program", "token=x --token", "token=x --token"},
		{"nothing", "", ""},
		{"known forms", "s ghp_" + "a1B2c3D4 github_" + "pat_11AAbb22 x=sk-" + "ant-api03-x1Y2 -k sk-" + "proj-ab12CD34ef AKIA" + "IOSFODNN7EX xoxb" + "-123-abc glpat" + "-ab_cd-12 AIza" + "SyA1b2C3d4E5", "s masked masked x=masked -k masked masked masked masked masked"},
		{"long and mixed", "s 9aB8cD7eF6gH5iJ4kL3m 0123456789abcdef0123456789abcdef 123e4567-e89b-12d3-a456-426614174000 --x=9aB8cD7eF6gH5iJ4kL3m", "s masked masked masked --x=masked"},
		{"in an address", "s https://h/hooks/9aB8cD7eF6gH5iJ4kL3m/x?q=9aB8cD7eF6gH5iJ4kL3m&r=1 https://h/123e4567-e89b-12d3-a456-426614174000", "s https://h/hooks/masked/x?q=masked&r=1 https://h/masked"},
		{"long names", "s @modelcontextprotocol/server-filesystem@2026.8.31 sk-learn-server /home/Me/Projects2/AllOfIt/index.js src/MyProject2/Main42/index sha256:0123456789abcdef0123456789abcdef 12345678901234567890123456789012 --some-Long-Flag-Name-22", "s @modelcontextprotocol/server-filesystem@2026.8.31 sk-learn-server /home/Me/Projects2/AllOfIt/index.js src/MyProject2/Main42/index sha256:0123456789abcdef0123456789abcdef 12345678901234567890123456789012 --some-Long-Flag-Name-22"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(wordsOf(tt.want), maskArguments(wordsOf(tt.in))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	in := []string{"s", "--token", "x"}
	if maskArguments(in); in[2] != "x" {
		t.Error("the server's own words change")
	}
}

// wordsOf splits at "|" where there is one, else at blanks.
func wordsOf(line string) []string {
	if first, rest, found := strings.Cut(line, "|"); found {
		return append(strings.Fields(first), strings.Split(rest, "|")...)
	}
	return strings.Fields(line)
}
