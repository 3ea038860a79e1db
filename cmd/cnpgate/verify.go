package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"aead.dev/minisign"
)

// verify checks that this program is a subject of a signed provenance statement (in-toto), and returns its name there. The public key is a file's, or the text of one.
func verify(statement, key string) (subject string, err error) {
	public, err := minisign.PublicKeyFromFile(key)
	if err != nil {
		if public.UnmarshalText([]byte(key)) != nil {
			return "", fmt.Errorf("--key %s: %w; expected minisign's public key, or a file with it", key, err)
		}
	}
	text, err := os.ReadFile(statement)
	if err != nil {
		return "", fmt.Errorf("--verify: %w; expected the provenance of the release", err)
	}
	signature, err := os.ReadFile(statement + ".minisig")
	if err != nil {
		return "", fmt.Errorf("--verify: %w; expected the signature of %s beside it", err, statement)
	}
	if !minisign.Verify(public, text, signature) {
		return "", fmt.Errorf("%s.minisig isn't the signature of %s with this key: don't use the release", statement, statement)
	}
	var s struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return "", fmt.Errorf("%s: %w", statement, err)
	}
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(own)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	for _, file := range s.Subject {
		if file.Digest["sha256"] == hex.EncodeToString(sum[:]) {
			return file.Name, nil
		}
	}
	return "", fmt.Errorf("%s has no file with the SHA-256 of %s, %x: it isn't the program of that release", statement, own, sum)
}
