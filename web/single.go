package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io/fs"
	"strings"
)

// SingleFile returns the playground as one file, which works without a server: styles, scripts and the simulator are part of it. state is what the address bar
// has in it at first. Its policy allows exactly these scripts, and no connection.
func SingleFile(files fs.FS, state string) ([]byte, error) {
	parts := map[string][]byte{}
	for _, name := range []string{"index.html", "style.css", "play.css", "play.js", "engine.js", "engine.wasm.gz"} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		parts[name] = text
	}
	script := append(escaped(parts["play.js"]), '\n')
	sum := sha256.Sum256(script)
	policy := fmt.Sprintf("default-src 'none'; script-src 'sha256-%s' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data:; worker-src blob:; base-uri 'none'; form-action 'none'%s",
		base64.StdEncoding.EncodeToString(sum[:]), trustedTypes)
	page := string(parts["index.html"])
	body := "<script type=\"text/plain\" id=\"engine-script\">" + string(escaped(parts["engine.js"])) + "</script>\n" +
		"<script type=\"text/plain\" id=\"engine-wasm\">" + base64.StdEncoding.EncodeToString(parts["engine.wasm.gz"]) + "</script>\n" +
		"<script>" + string(script) + "</script>\n</body>"
	for _, r := range []struct{ old, new string }{
		{`<meta charset="utf-8">`, `<meta charset="utf-8">` + "\n<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n<meta name=\"state\" content=\"" + html.EscapeString(state) + "\">"},
		{`<link rel="stylesheet" href="style.css">`, "<style>" + string(parts["style.css"]) + "</style>"},
		{`<link rel="stylesheet" href="play.css">`, "<style>" + string(parts["play.css"]) + "</style>"},
		{`<script src="play.js" defer></script>` + "\n", ""},
		{`<a href="diagnose.html">Diagnose a capture</a> `, ""},
		{"</body>", body},
	} {
		if strings.Count(page, r.old) != 1 {
			return nil, fmt.Errorf("index.html has no %q, or several: a bug in cnpgate; please report it", r.old)
		}
		page = strings.Replace(page, r.old, r.new, 1)
	}
	return []byte(page), nil
}

// escaped is a script that an HTML parser takes for one: the end tag of a script can only be part of a string or a comment.
func escaped(script []byte) []byte {
	return bytes.ReplaceAll(script, []byte("</script"), []byte(`<\/script`))
}
