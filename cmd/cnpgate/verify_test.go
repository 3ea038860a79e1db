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

// secretKey is for this test only; its password is "secret". A key that minisign writes takes 1 GB of memory each time that it is used; the cost that is written in
// this one is the least.
const secretKey = `untrusted comment: minisign encrypted secret key
RWRTY0Iyc+hDV92iq3j9pCuE9gV93ZUHwg6zvXgEZDtOdibWrToAgAAAAAAAAAAAAAEAAAAA+XEc8sFT4utQ9+mqF3QxMrZU3H108oOD+qYfSfO36Pa3kCX2mI4slRBOZBVwjVXshNHlcTnj/c9dJxooip6udta+WJkVnw+OR3qcBYKH+yZUs5NO4g/tA37+KZB9Ul+ZTHgiJQxpuEM=
`

// TestVerify: a binary verifies itself by a release's provenance, as tools/attest writes and signs it, and not if anything differs.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "attest")
	if out, err := exec.Command("go", "build", "-tags", "nodpdk", "-ldflags=-w", "-o", tool, "../../tools/attest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	attest := func(args ...string) []byte {
		c := exec.Command(tool, args...)
		c.Env = append(os.Environ(), "MINISIGN_PASSWORD=secret")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("attest %v: %v", args, err)
		}
		return out
	}
	put(t, dir, "key", []byte(secretKey))
	private, err := minisign.PrivateKeyFromFile("secret", filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	public := private.Public().(minisign.PublicKey)
	other, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
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
