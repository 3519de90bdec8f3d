package registrytest_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"stockade/sandbox/packages/registrytest"
)

func get(t *testing.T, client *http.Client, url, header, value string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		req.Header.Set(header, value)
	}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestRegistry(t *testing.T) {
	other := registrytest.Start(t)
	r := registrytest.StartWith(t, registrytest.Options{Token: "token", User: "me", Password: "password", Elsewhere: strings.TrimSuffix(other.NPM(), "/npm/")})
	p := registrytest.NPM{Name: "@a/b", Version: "1.0.0"}
	w := registrytest.Wheel{Name: "A.b", Version: "1.0"}
	for _, each := range []*registrytest.Registry{r, other} {
		each.AddNPM(p)
		each.AddPython(w)
	}
	_, port, err := net.SplitHostPort(r.Host())
	if n, _ := strconv.Atoi(port); err != nil || n >= 32768 {
		t.Errorf("listens on port %q: %v", port, err)
	}
	client := http.DefaultClient
	if status, _ := get(t, client, r.NPM()+"@a%2fb", "", ""); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	if status, body := get(t, client, r.NPM()+"@a%2fb", "Authorization", "Bearer token"); status != 200 || !strings.Contains(body, `"sha512-`) {
		t.Errorf("packument: %d %s", status, body)
	}
	if n := r.Count("/npm/@a/b"); n != 2 {
		t.Errorf("counted %d requests", n)
	}
	top := strings.TrimSuffix(other.NPM(), "/npm/")
	_, sound := get(t, client, top+p.Path(), "", "")
	other.Break(p.Path(), registrytest.Tampered)
	_, tampered := get(t, client, top+p.Path(), "", "")
	if len(sound) != len(tampered) || sound == tampered || sound != string(p.Tarball()) {
		t.Error("a tampered archive has the same content or another length")
	}
	for _, tt := range []struct {
		fault registrytest.Fault
		want  int
	}{{registrytest.Missing, 404}, {registrytest.Forbidden, 403}, {registrytest.Failing, 500}, {registrytest.Answer, 200}} {
		other.Break("/simple/a-b/", tt.fault)
		if status, _ := get(t, client, other.Index()+"a-b/", "", ""); status != tt.want {
			t.Errorf("fault %d answers %d, want %d", tt.fault, status, tt.want)
		}
	}
	r.Break("/simple/a-b/", registrytest.Elsewhere)
	if status, body := get(t, client, r.Index()+"a-b/", "", ""); status != 200 || !strings.Contains(body, other.Host()) {
		t.Errorf("elsewhere: %d %s", status, body)
	}
	if status, body := get(t, client, other.Index()+"a-b/", "Accept", "application/vnd.pypi.simple.v1+json"); status != 200 || !strings.Contains(body, `"hashes":{"sha256":"`) {
		t.Errorf("JSON: %d %s", status, body)
	}
}
