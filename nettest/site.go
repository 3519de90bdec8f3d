package nettest

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
)

// site is what every web server of the network shows, but for names that [Network.Host] added:
//
//	/            Greeting(place, host) in a page
//	/to?url=U    a redirect to U
//	/page?url=U  a page that loads a picture and a script from U
//	/bulk?n=N    N bytes
//	/repo.git/   a git repository, see [Network.Repository]
func (n *Network) site(door doorway) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		show(w, "", Greeting(door.place, r.Host))
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("url"), http.StatusFound)
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		from := html.EscapeString(r.FormValue("url"))
		show(w, fmt.Sprintf("<img src=%q><script src=%q></script>", from, from), Greeting(door.place, r.Host))
	})
	mux.HandleFunc("/bulk", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.ParseInt(r.FormValue("n"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		// The client may have enough before the end.
		_, _ = io.CopyN(w, zeros{}, size)
	})
	mux.Handle("/repo.git/", n.repositoryHandler())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.journal.hit(door, Hit{Event: Requested, From: remoteEnd(r), Name: r.Host, Text: r.URL.RequestURI()})
		if added := n.hosts.handler(r.Host); added != nil {
			added.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Greeting is what the page of a place says to a client that asked for host (with its port,
// when it is not the scheme's own).
func Greeting(place Place, host string) string {
	return fmt.Sprintf("greetings from %s as %s.", place, host)
}

func show(w http.ResponseWriter, head, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	text = html.EscapeString(text)
	// The client may be gone.
	_, _ = fmt.Fprintf(w, "<!doctype html><html><head><title>%s</title></head><body><p>%s</p>%s</body></html>\n", text, text, head)
}

// zeros is an endless stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
