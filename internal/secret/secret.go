// Package secret reads files that have a key, a password or a token.
package secret

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
)

// Most is the greatest size of a file, in bytes.
const Most = 64 << 10

// Read reads a file that only its owner can write, and nobody but its owner and group can read. No error contains a part of it.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w; expected a file that this user may read", err)
	}
	defer f.Close()
	info, err := f.Stat() // of the file that is read, whatever has the name by now
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file; expected one with a secret", path)
	case info.Size() > Most:
		return nil, fmt.Errorf("%s has %d bytes; expected at most %d", path, info.Size(), Most)
	case info.Mode().Perm()&0o037 != 0:
		return nil, fmt.Errorf("%s has mode %04o, with which others can read or change the secret; expected 0600, or 0640 at most: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, Most))
	if err != nil {
		return nil, err
	}
	return text, nil
}

// KeyPair reads a certificate and its private key (PEM), which is a secret.
func KeyPair(certificate, key string) (tls.Certificate, error) {
	public, err := os.ReadFile(certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := Read(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(public, private)
}
