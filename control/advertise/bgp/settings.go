// Package bgp announces and learns proxies by BGP (draft-xiao-proxy 5.4). It embeds GoBGP. Sessions use kernel sockets, on an interface beside the
// ports; nothing of it is in the data path, and a build with the tag nobgp has none of it.
package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/secret"
)

// Settings are the configuration with the passwords that its files contain.
type Settings struct {
	config.BGP
	passwords map[netip.Addr]string // by peer; never logged
}

const maxPassword = 80 // bytes (Linux, TCP_MD5SIG_MAXKEYLEN)

// Load reads the peers' passwords. The configuration may be nil: no BGP. An error says which key's file can't be used.
func Load(c *config.BGP) (*Settings, error) {
	if c == nil {
		return nil, nil
	}
	if !available {
		return nil, errors.New("proxy.bgp: this program was built without BGP (build tag nobgp); remove the section, or use a build with BGP")
	}
	s := &Settings{*c, map[netip.Addr]string{}}
	for i := range c.Peers {
		p := &c.Peers[i]
		if p.PasswordFile == "" {
			continue
		}
		password, err := readPassword(p.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("proxy.bgp.peers[%d].password_file: %w", i, err)
		}
		s.passwords[p.Address] = password
	}
	return s, nil
}

// readPassword reads a password file. No error contains a part of the password.
func readPassword(path string) (string, error) {
	text, err := secret.Read(path)
	if err != nil {
		return "", err
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case password == "":
		return "", fmt.Errorf("%s is empty; expected a password of at most %d bytes", path, maxPassword)
	case len(password) > maxPassword:
		return "", fmt.Errorf("%s has a password of %d bytes; expected at most %d", path, len(password), maxPassword)
	case strings.ContainsAny(password, "\n\r\x00"):
		return "", fmt.Errorf("%s has more than one line; expected the password alone", path)
	}
	return password, nil
}
