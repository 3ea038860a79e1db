// Command attest states of what a release was made (in-toto Statement with SLSA provenance), and signs its files with minisign. scripts/release runs it. The same
// files and key give the same bytes.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"aead.dev/minisign"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "attest:", err)
		os.Exit(1)
	}
}

const usage = "usage: attest provenance VERSION COMMIT FILE..., which prints the statement, or attest sign KEY FILE..., with the key's password in MINISIGN_PASSWORD"

func run(args []string) error {
	switch {
	case len(args) > 3 && args[0] == "provenance":
		s, err := provenance(args[1], args[2], args[3:])
		if err != nil {
			return err
		}
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(s)
	case len(args) > 2 && args[0] == "sign":
		key, err := minisign.PrivateKeyFromFile(os.Getenv("MINISIGN_PASSWORD"), args[1])
		if err != nil {
			return err
		}
		for _, name := range args[2:] {
			if err := sign(key, name); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New(usage)
}

// sign writes FILE.minisig. The signed comment has the file's name, not a time.
func sign(key minisign.PrivateKey, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name+".minisig", minisign.SignWithComments(key, text, "file:"+filepath.Base(name), "signature of a release of cnpgate"), 0o644)
}

// statement is what in-toto specifies (Statement v1), with the fields of SLSA's provenance (v1) that are known.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			ResolvedDependencies []resource        `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

const project = "https://github.com/cnpgate/cnpgate"

func provenance(version, commit string, files []string) (*statement, error) {
	s := &statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		s.Subject = append(s.Subject, resource{Name: filepath.Base(name), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType, build.ExternalParameters = project+"/blob/main/scripts/release", map[string]string{"version": version}
	build.ResolvedDependencies = []resource{
		{URI: "git+" + project, Digest: map[string]string{"gitCommit": commit}},
		{Name: "go", URI: "pkg:golang/std@" + runtime.Version()[len("go"):]},
	}
	s.Predicate.RunDetails.Builder.ID = project + "/blob/main/scripts/release"
	return s, nil
}
