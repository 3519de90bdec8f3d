package registrytest

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Fault is what a broken registry does with a request. The zero Fault answers it.
type Fault uint8

const (
	// Answer serves what is there.
	Answer Fault = iota
	// Tampered serves an archive of the same length with other content.
	Tampered
	// Missing answers 404.
	Missing
	// Forbidden answers 403.
	Forbidden
	// Failing answers 500.
	Failing
	// Hang accepts the request and never answers.
	Hang
	// Elsewhere redirects to [Options.Elsewhere].
	Elsewhere
)

// Protocol is what the registry speaks.
type Protocol uint8

const (
	// Plain is HTTP.
	Plain Protocol = iota
	// TLS is HTTPS, with a certificate that only [Registry.Authority] vouches for.
	TLS
)

// Options are what a registry is started with. The zero value is an open HTTP registry on
// 127.0.0.1.
type Options struct {
	// Address is the IP address to listen on; "" is 127.0.0.1.
	Address string
	// Protocol is HTTP or HTTPS.
	Protocol Protocol
	// Token is what npm has to send ("Authorization: Bearer …"); "" asks for none.
	Token string
	// User and Password are what pip has to send (basic authentication); "" asks for none.
	User, Password string
	// Elsewhere is the URL in front of a path that [Elsewhere] redirects to, without a
	// slash at its end.
	Elsewhere string
}

// Registry is a running registry. Its methods may be called while it serves.
type Registry struct {
	options Options
	server  *httptest.Server
	closing chan struct{}

	mu       sync.Mutex
	npm      map[string]*packument
	python   map[string][]pythonFile
	archives map[string][]byte // by path
	faults   map[string]Fault
	counts   map[string]int
}

// Start starts an open registry on 127.0.0.1 that ends with the test.
func Start(t testing.TB) *Registry {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith starts a registry that ends with the test.
func StartWith(t testing.TB, o Options) *Registry {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1"
	}
	r := &Registry{
		options:  o,
		closing:  make(chan struct{}),
		npm:      map[string]*packument{},
		python:   map[string][]pythonFile{},
		archives: map[string][]byte{},
		faults:   map[string]Fault{},
		counts:   map[string]int{},
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	if err := r.server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	r.server.Listener = listen(t, o.Address)
	if o.Protocol == TLS {
		r.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	t.Cleanup(func() {
		close(r.closing) // first: closing the server waits for requests that hang
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// listen takes a free port below the range that the kernel gives to outgoing connections: a
// port from that range can be taken by any program's connection between two runs.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var last error
	for range 200 {
		port := 20000 + rand.IntN(12000)                                                //nolint:gosec // a port to try, no secret
		listener, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port))) //nolint:noctx // a listener for the length of a test
		if err == nil {
			return listener
		}
		last = err
	}
	t.Fatalf("finding a free port on %s: %v", address, last)
	return nil
}

// NPM returns the npm registry's URL, with a slash at its end.
func (r *Registry) NPM() string { return r.server.URL + "/npm/" }

// Index returns the URL of the Python index (PEP 503), with a slash at its end.
func (r *Registry) Index() string { return r.server.URL + "/simple/" }

// Host returns the registry's address with its port.
func (r *Registry) Host() string { return r.server.Listener.Addr().String() }

// Stop ends the registry before the test does: nothing listens on its port then.
func (r *Registry) Stop() {
	r.server.CloseClientConnections()
	r.server.Listener.Close() //nolint:errcheck // closed once more at the end
}

// Authority writes the certificate that vouches for a TLS registry into a file and returns
// the file's path.
func (r *Registry) Authority(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authority.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o644); err != nil { //nolint:gosec // a certificate is public
		t.Fatal(err)
	}
	return file
}

// Break makes the registry answer a path with a fault from now on. The path is decoded:
// "/npm/@scope/name", "/npm/name/-/name-1.0.0.tgz", "/simple/name/".
func (r *Registry) Break(path string, f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[path] = f
}

// Count tells how many requests a path (decoded) has had.
func (r *Registry) Count(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[path]
}

// Total tells how many requests there have been.
func (r *Registry) Total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, count := range r.counts {
		n += count
	}
	return n
}

// archive keeps an archive under its path.
func (r *Registry) archive(path string, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.archives[path] = content
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	path := req.URL.Path
	r.mu.Lock()
	r.counts[path]++
	fault := r.faults[path]
	archive, isArchive := r.archives[path]
	r.mu.Unlock()

	switch fault {
	case Missing:
		http.NotFound(w, req)
		return
	case Forbidden:
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	case Failing:
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	case Hang:
		select {
		case <-r.closing:
		case <-req.Context().Done():
		}
		return
	case Elsewhere:
		http.Redirect(w, req, r.options.Elsewhere+req.URL.EscapedPath(), http.StatusFound) //nolint:gosec // to the registry that the test names
		return
	case Tampered:
		archive = tamper(archive)
	case Answer:
	}
	if !r.admits(w, req) {
		return
	}
	switch name, isNPM := strings.CutPrefix(path, "/npm/"); {
	case isArchive:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(archive) // the client may be gone
	case isNPM:
		r.servePackument(w, req, name)
	case strings.HasPrefix(path, "/simple/"):
		r.serveIndex(w, req, strings.TrimPrefix(path, "/simple/"))
	default:
		http.NotFound(w, req)
	}
}

// admits asks for the credentials of the path's side, and answers for want of them.
func (r *Registry) admits(w http.ResponseWriter, req *http.Request) bool {
	if strings.HasPrefix(req.URL.Path, "/npm/") {
		if r.options.Token == "" || same(req.Header.Get("Authorization"), "Bearer "+r.options.Token) {
			return true
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token, please", http.StatusUnauthorized)
		return false
	}
	user, password, _ := req.BasicAuth()
	if r.options.User == "" || same(user, r.options.User) && same(password, r.options.Password) {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="index"`)
	http.Error(w, "a password, please", http.StatusUnauthorized)
	return false
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
