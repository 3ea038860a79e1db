package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/cnpgate/cnpgate/internal/secret"
	"github.com/nats-io/nkeys"
)

// CreateKey makes a host's key, writes its seed to a file that only its owner can read, and returns the public key.
func CreateKey(path string) (public string, err error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer key.Wipe()
	seed, err := key.Seed()
	if err != nil {
		return "", err
	}
	if public, err = key.PublicKey(); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%w; a key is never replaced: remove the file first, and then the old public key from the gateways and the broker", err)
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(seed, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return public, err
}

// ReadKey reads a host's key from a file with its seed.
func ReadKey(path string) (nkeys.KeyPair, error) {
	text, err := secret.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the host's key: %w; make NAME.nk: cnpgate fleet keys NAME", err)
	}
	if err != nil {
		return nil, fmt.Errorf("the host's key: %w", err)
	}
	key, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(text))))
	if err != nil {
		return nil, fmt.Errorf("the host's key %s: %w; expected the seed of an nkey, such as cnpgate fleet keys writes", path, err)
	}
	return key, nil
}
