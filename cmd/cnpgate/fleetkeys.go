package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/agent"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

func fleetCommand() *cobra.Command {
	c := &cobra.Command{Use: "fleet", Short: "Make what the gateways of a fleet need; cnpgate show fleet prints its state"}
	c.AddCommand(fleetKeysCommand())
	return c
}

func fleetKeysCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "keys NAME=ADDRESS[,ADDRESS]|HOST... [--dir DIR]",
		Short: "Make the keys and certificates of a fleet's gateways, or a host's key, and print their fleet sections",
		Long: `For each gateway it makes NAME.nk, the seed of its nkey, and NAME.pem and NAME.key, a certificate for the addresses and host names at which the others reach it,
which a CA of its own signs: ca.pem and ca.key. It replaces no file; if there is a CA in the folder, it signs with that, so that a gateway can be added later. It prints the
members for the configurations of all. Copy NAME.* and ca.pem to the gateway, and keep ca.key away from all of them. Certificates are valid for 10 years.

Of a name without an address it makes only NAME.nk, such as the key of a host for cnpgate agent; made on the host, it never leaves it. It prints the public key, which the gateways'
fleet.hosts and the broker's users need. Whoever has a .nk file can speak for its gateway or host.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return seeHelp(c, errors.New("no gateway or host is given; expected each gateway as NAME=ADDRESS, such as gw-1=192.0.2.1, and each host as NAME"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return makeFleetKeys(c, dir, args, time.Now()) },
	}
	c.Flags().StringVar(&dir, "dir", ".", "folder for the files")
	return c
}

// makeFleetKeys makes the files of some gateways, given as NAME=ADDRESS[,ADDRESS], and of hosts, given as NAME.
func makeFleetKeys(c *cobra.Command, dir string, members []string, now time.Time) (err error) {
	names, addresses := make([]string, len(members)), make([][]string, len(members)) // nil: a host
	var ca *authority                                                                // nil: of hosts only
	for i, text := range members {
		name, list, gateway := strings.Cut(text, "=")
		if !wire.ValidName(name) || name == "ca" || gateway && list == "" {
			return fmt.Errorf("%q is no gateway or host; expected NAME=ADDRESS[,ADDRESS], such as gw-1=192.0.2.1,gw-1.example.net, or for a host NAME; a name has at most %d of a-z, 0-9 and -, and isn't ca",
				text, wire.MaxName)
		}
		if names[i] = name; gateway {
			addresses[i] = strings.Split(list, ",")
		}
	}
	if slices.ContainsFunc(addresses, func(a []string) bool { return a != nil }) {
		if ca, err = openCA(dir, now); err != nil {
			return err
		}
	}
	out := c.OutOrStdout()
	if ca != nil {
		fmt.Fprintln(out, "  members:")
	}
	for i, name := range names {
		public, err := agent.CreateKey(filepath.Join(dir, name+".nk"))
		if err == nil && addresses[i] != nil {
			err = ca.issue(dir, name, addresses[i], now)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "    - {name: %s, key: %s}\n", name, public)
	}
	if ca == nil {
		return nil
	}
	_, err = fmt.Fprintln(out, "  tls: {ca: /etc/cnpgate/ca.pem, cert: /etc/cnpgate/NAME.pem, key: /etc/cnpgate/NAME.key}")
	return err
}

// validity of the certificates: who has a gateway's files can be removed from members.
const validity = 10 * 365 * 24 * time.Hour

// authority signs the certificates of gateways.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// openCA reads the CA of a folder, or makes one.
func openCA(dir string, now time.Time) (*authority, error) {
	certificate, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a := &authority{}
		a.certificate, a.key, err = certify(dir, "ca", &x509.Certificate{
			Subject: pkix.Name{CommonName: "cnpgate fleet CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}, nil, now)
		return a, err
	case err != nil:
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, fmt.Errorf("%w; it belongs to the ca.pem there: bring it, or give another --dir", err)
	}
	a := &authority{}
	if block, _ := pem.Decode(certificate); block != nil {
		a.certificate, err = x509.ParseCertificate(block.Bytes)
	}
	if block, _ := pem.Decode(key); err == nil && block != nil {
		a.key, err = x509.ParseECPrivateKey(block.Bytes)
	}
	if err != nil || a.certificate == nil || a.key == nil {
		return nil, fmt.Errorf("%s: ca.pem and ca.key are not a CA that this command has made: %v", dir, err)
	}
	return a, nil
}

// issue makes the certificate of a gateway, which is a server to the others and their client.
func (a *authority) issue(dir, name string, hosts []string, now time.Time) error {
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	_, _, err := certify(dir, name, c, a, now)
	return err
}

// certify signs a certificate with a new key, by itself without an authority, and writes NAME.pem and NAME.key.
func certify(dir, name string, c *x509.Certificate, by *authority, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	const serialBits = 127
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, nil, err
	}
	c.NotBefore, c.NotAfter = now.Add(-time.Hour), now.Add(validity) // clocks differ
	if by == nil {
		by = &authority{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err == nil {
		err = writeNew(filepath.Join(dir, name+".key"), 0o600, "EC PRIVATE KEY", secret)
	}
	if err == nil {
		err = writeNew(filepath.Join(dir, name+".pem"), 0o644, "CERTIFICATE", der)
	}
	if err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

// writeNew writes a PEM file that doesn't exist yet.
func writeNew(path string, mode fs.FileMode, kind string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("%w; no file is replaced", err)
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: content}), f.Close())
}
