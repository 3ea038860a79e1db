package main

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// TestVerify: a binary verifies itself by a release's provenance, as tools/attest writes and signs it, and not if anything differs.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	attest := func(args ...string) []byte {
		c := exec.Command("go", append([]string{"run", "-tags", "nodpdk", "../../tools/attest"}, args...)...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "MINISIGN_PASSWORD=secret")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("attest %v: %v", args, err)
		}
		return out
	}
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := minisign.EncryptKey("secret", private)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "key", encrypted)
	put(t, dir, "key.pub", []byte("untrusted comment: a key\n"+public.String()+"\n"))
	statement, key := filepath.Join(dir, "good.json"), filepath.Join(dir, "key")
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(dir, "changed")
	if err := os.WriteFile(changed, append(program, 0), 0o700); err != nil {
		t.Fatal(err)
	}
	text := attest("provenance", "v1.2.3", "0123abcd", binary, key)
	put(t, dir, "good.json", text)
	put(t, dir, "unsigned.json", text)
	attest("sign", key, statement)
	first, err := os.ReadFile(statement + ".minisig")
	if err != nil {
		t.Fatal(err)
	}
	attest("sign", key, statement)
	if again, err := os.ReadFile(statement + ".minisig"); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same signature differs: %v", err)
	}
	put(t, dir, "forged.json", bytes.Replace(text, []byte("v1.2.3"), []byte("v1.2.4"), 1))
	put(t, dir, "forged.json.minisig", first)
	for name, c := range map[string]struct{ program, statement, key, want string }{
		"good":          {binary, "good.json", public.String(), "verified: it is " + filepath.Base(binary)},
		"key in a file": {binary, "good.json", filepath.Join(dir, "key.pub"), "verified"},
		"other key":     {binary, "good.json", other.String(), "isn't the signature"},
		"no key":        {binary, "good.json", "nothing", "expected minisign's public key"},
		"no signature":  {binary, "unsigned.json", public.String(), "expected the signature"},
		"forged":        {binary, "forged.json", public.String(), "isn't the signature"},
		"other program": {changed, "good.json", public.String(), "isn't the program of that release"},
		"no statement":  {binary, "missing.json", public.String(), "expected the provenance"},
	} {
		out, err := exec.Command(c.program, "version", "--verify", filepath.Join(dir, c.statement), "--key", c.key).CombinedOutput()
		if good := strings.HasPrefix(c.want, "verified"); good != (err == nil) || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s; want %q", name, err, out, c.want)
		}
	}
}
