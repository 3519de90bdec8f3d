package egress_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/sandbox/egress"
)

func TestServers(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"127.0.0.1:53"}},
		{"no usable line", "search example\nnameserver\nnameserver x\n nameserver 9.9.9.9\nnameserver9.9.9.9\n#nameserver 9.9.9.9\n", []string{"127.0.0.1:53"}},
		{"order", "nameserver 192.0.2.1\noptions use-vc\nnameserver\t2001:db8::1 # x\r\n", []string{"192.0.2.1:53", "[2001:db8::1]:53"}},
		{"three at most", "nameserver 1.1.1.1\nnameserver 2.2.2.2\nnameserver 3.3.3.3\nnameserver 4.4.4.4", []string{"1.1.1.1:53", "2.2.2.2:53", "3.3.3.3:53"}},
		{"zones", "nameserver fe80::1%eth0\nnameserver 2001:db8::1%eth0\n", []string{"[fe80::1%eth0]:53", "[2001:db8::1]:53"}},
		{"mapped", "nameserver ::ffff:192.0.2.1\n", []string{"192.0.2.1:53"}},
		{"local stub", "nameserver 127.0.0.53\noptions edns0 trust-ad\n", []string{"127.0.0.53:53"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range egress.Servers([]byte(tt.text)) {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseHosts(t *testing.T) {
	text := "127.0.0.1\tlocalhost Loop.\n" +
		"::1 localhost ip6-localhost\n" +
		"# 6.6.6.6 evil.example\n" +
		"::ffff:192.0.2.1 DB.example db # the database\r\n" +
		"192.0.2.1 db.example\n192.0.2.2 db.example\n" +
		"fe80::1%lo linked\nnot-an-address x\n192.0.2.3\n192.0.2.4 b\xc3\xa4d.example ok.example"
	want := egress.Hosts{}
	for name, addrs := range map[string][]string{
		"localhost": {"127.0.0.1", "::1"}, "loop": {"127.0.0.1"}, "ip6-localhost": {"::1"},
		"db.example": {"192.0.2.1", "192.0.2.2"}, "db": {"192.0.2.1"}, "ok.example": {"192.0.2.4"},
	} {
		for _, a := range addrs {
			want[name] = append(want[name], netip.MustParseAddr(a))
		}
	}
	same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, egress.ParseHosts([]byte(text)), same); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}
