package main

import (
	"strings"
	"testing"
)

func TestStartsAnother(t *testing.T) {
	tests := []struct{ line, want string }{
		{"sh|-c|cd /x && ./y", "sh -c starts what a shell's line says"},
		{"/bin/bash|-lc|x; y", "bash -lc starts"},
		{"bash|-o|pipefail|-c|x; y", "bash -c starts"},
		{"fish|--command=x; y", "fish --command starts"},
		{"fish|-c|x; y", "fish -c starts"},
		{"zsh|-ec|x; y", "zsh -ec starts"},
		{"sh|-c|echo x", "sh -c starts"},
		{"sh|./server.sh|-c|conf", ""},
		{"bash|/srv/server.sh", ""},
		{"bash|--norc|/srv/server.sh|-c", ""},
		{"env|A=b|TOKEN=t|node|x.js", "env starts another program: write that program itself: node x.js, with A, TOKEN in the entry's variables"},
		{"env|node|--token|t", "write that program itself: node --token masked"},
		{"env|-i|node|x.js", "env starts another program: write that program itself"},
		{"timeout|30|node|x.js", "write that program itself: node x.js"},
		{"nohup|node|x.js", "write that program itself: node x.js"},
		{"nice|-n|5|node|x.js", "nice starts another program"},
		{"xargs|-0|node", "xargs starts another program"},
		{"sudo|node|x.js", "sudo starts another program"},
		{"node|x.js|-c|y", ""},
		{"/opt/env.d/server|A=b", ""},
	}
	for _, tt := range tests {
		got := startsAnother(strings.Split(tt.line, "|"))
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
		if strings.HasSuffix(tt.line, "x.js") && strings.Contains(got, "TOKEN=t") {
			t.Errorf("%s: %q tells a value", tt.line, got)
		}
	}
}
