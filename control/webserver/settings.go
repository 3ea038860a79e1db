package webserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/secret"
)

const (
	leastToken = 32 // characters
	mostToken  = 256
)

// Settings are where the page is served, with the contents of the files that protect it.
type Settings struct {
	listen      string
	certificate *tls.Certificate   // nil: HTTP without TLS
	token       *[sha256.Size]byte // the hash of it; nil: none
}

// Local serves at a loopback address, without TLS and token.
func Local(listen string) *Settings { return &Settings{listen: listen} }

// Load reads the files of the configuration, which may be nil: no page. An error says which key's file can't be used.
func Load(c *config.Web) (*Settings, error) {
	if c == nil {
		return nil, nil
	}
	s := &Settings{listen: c.Listen}
	if c.Certificate != "" {
		pair, err := secret.KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, fmt.Errorf("management.web.certificate and key: %w; expected a certificate chain and its private key as PEM, which this user may read", err)
		}
		if pair.Leaf == nil {
			if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
				return nil, fmt.Errorf("management.web.certificate: %w", err)
			}
		}
		s.certificate = &pair
	}
	if c.TokenFile != "" {
		token, err := readToken(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("management.web.token_file: %w", err)
		}
		sum := sha256.Sum256([]byte(token))
		s.token = &sum
	}
	return s, nil
}

// readToken reads a token file. No error contains a part of the token.
func readToken(path string) (string, error) {
	text, err := secret.Read(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	visible := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(token) < leastToken || len(token) > mostToken || strings.ContainsFunc(token, func(r rune) bool { return !visible(r) }) {
		return "", fmt.Errorf("%s has no token; expected one line of %d to %d ASCII characters without spaces, such as from: openssl rand -hex 32", path, leastToken, mostToken)
	}
	return token, nil
}

// equal reports whether certificate and token are the same.
func (s *Settings) equal(other *Settings) bool {
	one, two := s.certificate, other.certificate
	return (s.token == nil) == (other.token == nil) && (s.token == nil || *s.token == *other.token) &&
		(one == nil) == (two == nil) && (one == nil || one.Leaf.Equal(two.Leaf))
}

var errToken = errors.New("the token is missing or wrong; expected that of management.web.token_file")

// admits reports whether an Authorization header has the token. The time that it takes doesn't depend on the token.
func (s *Settings) admits(authorization string) bool {
	if s.token == nil {
		return true
	}
	given, ok := strings.CutPrefix(authorization, "Bearer ")
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && ok
}
