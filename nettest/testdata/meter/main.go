// Command meter measures the network from where it runs. Its first argument says what; it
// prints one line of JSON.
//
//	connects HOST PORT N   time of connect(2), one after the other: median and p99 in ns, and calls a second
//	requests URL N         time to a whole answer on a new connection each
//	bulk URL               bytes a second of one download
//	hold URL N             N connections with an answer each, kept until standard input ends
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

type figures struct {
	Median int64   `json:"median,omitempty"` // ns
	P99    int64   `json:"p99,omitempty"`    // ns
	Rate   float64 `json:"rate,omitempty"`   // a second: calls, or bytes
}

func main() {
	if err := measure(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "meter:", err)
		os.Exit(1)
	}
}

func measure(words []string) error {
	var f figures
	var err error
	switch words[0] {
	case "connects":
		f, err = connects(words[1], words[2], count(words[3]))
	case "requests":
		f, err = requests(words[1], count(words[2]))
	case "bulk":
		f, err = bulk(words[1])
	case "hold":
		return hold(words[1], count(words[2]))
	default:
		err = fmt.Errorf("unknown word %q", words[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "meter:", err)
		os.Exit(2)
	}
	return n
}

// connects uses the blocking call itself, so that nothing but it is in the figure.
func connects(host, port string, n int) (figures, error) {
	found, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", host)
	if err != nil {
		return figures{}, err
	}
	to := &syscall.SockaddrInet4{Port: count(port), Addr: found[0].Unmap().As4()}
	times := make([]int64, 0, n)
	began := time.Now()
	for range n {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return figures{}, err
		}
		// A reset at the end leaves no port in TIME_WAIT.
		if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}); err != nil {
			return figures{}, err
		}
		start := time.Now()
		err = syscall.Connect(fd, to)
		times = append(times, time.Since(start).Nanoseconds())
		if err := syscall.Close(fd); err != nil {
			return figures{}, err
		}
		if err != nil {
			return figures{}, err
		}
	}
	return summary(times, time.Since(began)), nil
}

func requests(url string, n int) (figures, error) {
	times := make([]int64, 0, n)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	for range n {
		start := time.Now()
		response, err := client.Get(url)
		if err != nil {
			return figures{}, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return figures{}, err
		}
		_ = response.Body.Close()
		times = append(times, time.Since(start).Nanoseconds())
	}
	return summary(times, time.Since(began)), nil
}

func summary(times []int64, all time.Duration) figures {
	slices.Sort(times)
	return figures{Median: times[len(times)/2], P99: times[len(times)*99/100], Rate: float64(len(times)) / all.Seconds()}
}

func bulk(url string) (figures, error) {
	start := time.Now()
	response, err := http.Get(url)
	if err != nil {
		return figures{}, err
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	return figures{Rate: float64(n) / time.Since(start).Seconds()}, err
}

func hold(url string, n int) error {
	held := make([]*http.Response, 0, n)
	for range n {
		// A body that is not read keeps its connection.
		response, err := (&http.Client{Transport: &http.Transport{}}).Get(url)
		if err != nil {
			return err
		}
		held = append(held, response)
	}
	fmt.Println(len(held))
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err == io.EOF {
		err = nil
	}
	return err
}
