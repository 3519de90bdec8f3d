package nettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"sync"
	"time"
)

// issuer is a certificate authority that signs whatever name a client asks for, as the
// owners of the network's names would have it done.
type issuer struct {
	path string // of its certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	serial int64
	issued map[string]*tls.Certificate
}

func newIssuer(path string) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority of the test network"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the authority: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // every user's clients read it
		return nil, fmt.Errorf("writing the authority: %w", err)
	}
	return &issuer{path: path, cert: cert, key: key, serial: 1, issued: map[string]*tls.Certificate{}}, nil
}

// certificate returns one for a host name, or for an address when the client sent no name.
func (i *issuer) certificate(name string) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if have := i.issued[name]; have != nil {
		return have, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key for %s: %w", name, err)
	}
	i.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(i.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(7 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if address := net.ParseIP(name); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, key.Public(), i.key)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	issued := &tls.Certificate{Certificate: [][]byte{der, i.cert.Raw}, PrivateKey: key}
	i.issued[name] = issued
	return issued, nil
}

// PublicKeyHash is the SHA-256 of the authority's public key in base64, as browsers pin it.
func (n *Network) PublicKeyHash() string {
	sum := sha256.Sum256(n.issuer.cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// tlsConfig writes down the server name of every hello, and answers with a certificate for it.
func (n *Network) tlsConfig(door doorway) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			n.journal.hit(door, Hit{Event: Greeted, From: endOf(hello.Conn.RemoteAddr()), Name: hello.ServerName})
			if hello.ServerName == "" {
				return n.issuer.certificate(door.address.Addr().String())
			}
			return n.issuer.certificate(hello.ServerName)
		},
	}
}

// silent is a log for servers whose clients are meant to misbehave.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }
