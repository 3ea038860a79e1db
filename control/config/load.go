package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// Load reads and resolves the configuration file at path. If the file can't be read, the error wraps the system's; if it has
// mistakes, the error is an *Error.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads and resolves a configuration; path is its name in errors and warnings.
func Read(path string, f io.Reader) (*Config, error) {
	data, err := io.ReadAll(io.LimitReader(f, yamldoc.MaxFile+1)) // one byte more than Parse takes, so that it sees the file is too long
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Parse(path, data)
}

func unreadable(path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	switch {
	case path == "":
		return errors.New("the name of the configuration file is empty; expected a path")
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such configuration file; check the path: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user may not read the configuration file; check owner and mode: %w", path, err)
	}
	if errors.Is(err, syscall.EISDIR) {
		return fmt.Errorf("%s: can't read the configuration file: %w; give the YAML file in this directory", path, err)
	}
	return fmt.Errorf("%s: can't read the configuration file: %w", path, err)
}

// Parse resolves the configuration in data; name is the file's name in errors and warnings. It returns a snapshot or an *Error,
// never both.
func Parse(name string, data []byte) (*Config, error) {
	d, err := yamldoc.Parse(name, "gateway and ports", data, forms)
	if err != nil {
		return nil, err
	}
	file := &document{}
	cfg := (&resolver{d, file}).resolve(d.Decode(file))
	if err := d.Err(); err != nil {
		return nil, err
	}
	cfg.Warnings, cfg.File = d.Warnings(), File{name, data}
	d.Root = nil // a long list's nodes take more memory than its values
	return cfg, nil
}

// ParseDocument parses a document that has gateways' configurations in it; needs are the sections that it must have.
func ParseDocument(name, needs string, data []byte) (*yamldoc.Document, error) {
	return yamldoc.Parse(name, needs, data, forms)
}

// Embedded reads a gateway's configuration, y, that is part of a document at a key's address. It notes mistakes there, and then returns nil.
func Embedded(d *yamldoc.Document, address any, y *yaml.Node) *Config {
	e, file := d.Embedded(), &document{}
	cfg := (&resolver{e, file}).resolve(e.DecodeNode(file, y, d.At(address).Path))
	if e.Err() != nil {
		d.Join(e)
		return nil
	}
	return cfg
}

// JSONSchema is a JSON Schema of a configuration file. It describes the form of each value. Only Parse checks rules between values and the bounds of
// values with units.
func JSONSchema() []byte {
	return yamldoc.JSONSchema(document{}, forms, "cnpgate configuration",
		"docs/configuration.md describes each key. cnpgate check also checks rules between values and the bounds of values with units.")
}
