package examples_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stockade/examples/stock"
	"stockade/sandbox/jailtest"
)

// cluster is an API server with one pod, as far as "kubectl get pods" asks.
type cluster struct {
	*httptest.Server
	pod      string
	requests atomic.Int64
}

const clusterToken = "token-of-nobody"

func newCluster(t *testing.T, pod string) *cluster {
	t.Helper()
	c := &cluster{pod: pod}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	if r.Header.Get("Authorization") != "Bearer "+clusterToken {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401}`, http.StatusUnauthorized)
		return
	}
	answers := map[string]any{
		"/api":  map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []string{}},
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": []string{"get", "list"}, "shortNames": []string{"po"}},
		}},
		"/api/v1/namespaces/default/pods": map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{
			map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": c.pod, "namespace": "default"}, "status": map[string]any{"phase": "Running"}},
		}},
	}
	answer, found := answers[r.URL.Path]
	if !found {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

func (c *cluster) address() string { return c.Listener.Addr().String() }

// kubeconfig writes a kubeconfig with a context for each cluster, named as its pod.
func kubeconfig(t *testing.T, path string, clusters ...*cluster) {
	t.Helper()
	var list, contexts strings.Builder
	for _, c := range clusters {
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
		fmt.Fprintf(&list, "- {name: %s, cluster: {server: %q, certificate-authority-data: %s}}\n", c.pod, c.URL, base64.StdEncoding.EncodeToString(authority))
		fmt.Fprintf(&contexts, "- {name: %s, context: {cluster: %[1]s, user: me}}\n", c.pod)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: %s\nusers:\n- {name: me, user: {token: %s}}\nclusters:\n%scontexts:\n%s",
		clusters[0].pod, clusterToken, &list, &contexts))
}

func TestKubernetes(t *testing.T) {
	jailtest.Need(t, jailtest.Probe{Name: "kubectl", Check: func() error {
		_, err := exec.LookPath("kubectl")
		return err
	}})
	harbour, quay := newCluster(t, "harbour"), newCluster(t, "quay")
	p := newPlace(t)
	config := filepath.Join(p.home, ".kube", "config")
	kubeconfig(t, config, harbour, quay)
	command, err := stock.Kubernetes.Command()
	if err != nil {
		t.Fatal(err)
	}
	pods := func(c *cluster) map[string]any {
		return map[string]any{"resourceType": "pods", "namespace": "default", "context": c.pod}
	}
	manifest := map[string]any{"filename": p.secret, "dryRun": true}

	s := connect(t, p.command(jailWith("--egress", harbour.address())(t, command...)...))
	if got := s.tools(t); !slices.Contains(got, "kubectl_get") {
		t.Errorf("the server lists %q", got)
	}
	s.served(t, "kubectl_get", pods(harbour), `"name": "harbour"`)
	before := quay.requests.Load()
	s.denied(t, "kubectl_get", pods(quay), "connect: permission denied")
	if n := quay.requests.Load() - before; n != 0 {
		t.Errorf("%d requests came out of the jail", n)
	}
	s.denied(t, "kubectl_apply", manifest, "permission denied")
	s.served(t, "kubectl_get", pods(harbour), `"name": "harbour"`)
	s.end(t)
	if want := fmt.Sprintf("to allow it, add %q to network.egress", quay.address()); !strings.Contains(s.stderr.String(), want) {
		t.Errorf("standard error holds %q, want %q", s.stderr, want)
	}
	if strings.Contains(s.stderr.String(), clusterToken) {
		t.Error("the token is on standard error")
	}

	alone := connect(t, p.command(in("")(t, command...)...))
	alone.denied(t, "kubectl_get", pods(harbour), "address family not supported")
	alone.end(t)

	outside := connect(t, p.command(free(t, command...)...))
	outside.served(t, "kubectl_get", pods(quay), `"name": "quay"`)
	if text, failed := outside.outcome(t, "kubectl_apply", manifest); !failed || strings.Contains(text, "permission denied") {
		t.Errorf("outside the jail the file is not read: %q", text)
	}
	outside.end(t)
}
