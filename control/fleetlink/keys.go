//go:build !nofleet

package fleetlink

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/nats-io/nkeys"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/internal/secret"
)

// loadKey reads the gateway's nkey. No error contains a part of it.
func loadKey(path string) (nkeys.KeyPair, string, error) {
	text, err := secret.Read(path)
	if err != nil {
		return nil, "", fmt.Errorf("fleet.key: %w (`cnpgate fleet keys` writes one)", err)
	}
	pair, err := nkeys.ParseDecoratedUserNKey(text)
	if err != nil {
		return nil, "", fmt.Errorf("fleet.key: %s has no nkey seed of a user; expected a file that `cnpgate fleet keys` has written", path)
	}
	public, err := pair.PublicKey()
	return pair, public, err
}

// publicKey is the Ed25519 key of a public nkey.
func publicKey(key, text string) (ed25519.PublicKey, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(text))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%s: %q has a wrong checksum; expected a public nkey as `cnpgate fleet keys` prints it", key, text)
	}
	return raw, nil
}

// parties are those who may take part. own is this gateway's public key, which must be its member's.
func parties(c *config.Fleet, own string) (all []fleet.Party, err error) {
	for i, m := range c.Members {
		if m.Name == c.Name && m.Key != own {
			return nil, fmt.Errorf("fleet.members[%d].key: is %s, and the public key of fleet.key (%s) is %s; correct one of them", i, m.Key, c.Key, own)
		}
		k, err := publicKey(fmt.Sprintf("fleet.members[%d].key", i), m.Key)
		if err != nil {
			return nil, err
		}
		all = append(all, fleet.Party{Name: m.Name, Key: k})
	}
	for i, h := range c.Hosts {
		k, err := publicKey(fmt.Sprintf("fleet.hosts[%d].key", i), h.Key)
		if err != nil {
			return nil, err
		}
		all = append(all, fleet.Party{Name: h.Name, Key: k, Addresses: h.Addresses})
	}
	return all, nil
}

// loadTLS makes the TLS settings; nil without TLS. Both ends of a connection show a certificate of the CA.
func loadTLS(c *config.FleetTLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("fleet.tls.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("fleet.tls.ca: %s has no certificate; expected PEM", c.CA)
	}
	t := &tls.Config{RootCAs: pool, ClientCAs: pool, MinVersion: tls.VersionTLS13}
	if c.Cert != "" {
		pair, err := secret.KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("fleet.tls.cert: %w", err)
		}
		t.Certificates, t.ClientAuth = []tls.Certificate{pair}, tls.RequireAndVerifyClientCert
	}
	return t, nil
}
