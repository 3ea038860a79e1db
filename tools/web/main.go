// Command web builds the page that the binary embeds: it bundles web/src with esbuild, and compiles web/wasm to WebAssembly. scripts/build runs it.
// What is unchanged isn't written again.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	root := flag.String("root", ".", "folder of the sources")
	out := flag.String("o", "web/dist", "folder for the built page")
	flag.Parse()
	if err := build(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func build(root, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	src := filepath.Join(root, "web", "src")
	for _, name := range []string{"index.html", "live.html", "diagnose.html"} {
		text, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(out, name), text); err != nil {
			return err
		}
	}
	goroot, err := goEnv("GOROOT")
	if err != nil {
		return err
	}
	if err := bundle(src, out, filepath.Join(goroot, "lib", "wasm", "wasm_exec.js")); err != nil {
		return err
	}
	return engine(root, filepath.Join(out, "engine.wasm.gz"))
}

// bundle bundles the scripts and styles. Names in CSS and JavaScript that begin with "vendor/" are below web/vendor, and wasm_exec is Go's.
func bundle(src, out, wasmExec string) error {
	vendor := func(name string) string { return filepath.Join(src, "..", "vendor", name) }
	root, err := filepath.Abs(src)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(vendor("uplot/LICENSE"))
	if err != nil {
		return err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: root,
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "play/main.js", OutputPath: "play"},
			{InputPath: "common/worker.js", OutputPath: "engine"},
			{InputPath: "live/main.js", OutputPath: "live"},
			{InputPath: "diagnose/main.js", OutputPath: "diagnose"},
			{InputPath: "common/style.css", OutputPath: "style"},
		},
		Alias:  map[string]string{"uplot": abs(vendor("uplot/uPlot.esm.js")), "uplot.css": abs(vendor("uplot/uPlot.min.css")), "wasm_exec": wasmExec},
		Bundle: true, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsInline,
		Banner: map[string]string{"js": "/*! With uPlot:\n" + string(license) + "*/"},
		Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetUTF8, Outdir: abs(out), LogLevel: api.LogLevelSilent,
	})
	var mistakes []error
	for _, text := range api.FormatMessages(append(result.Errors, result.Warnings...), api.FormatMessagesOptions{}) {
		mistakes = append(mistakes, errors.New(strings.TrimSpace(text)))
	}
	if len(mistakes) > 0 {
		return errors.Join(mistakes...)
	}
	for _, f := range result.OutputFiles {
		if err := write(f.Path, f.Contents); err != nil {
			return err
		}
	}
	return nil
}

// engine compiles what the page runs. The compressed file's comment is the sum of what is in it, so that compressing it again can be left out.
func engine(root, to string) error {
	dir, err := os.MkdirTemp("", "cnpgate-web")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "engine.wasm")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", binary, "./web/wasm")
	c.Dir, c.Stderr = root, os.Stderr
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if err := c.Run(); err != nil {
		return fmt.Errorf("compiling web/wasm to WebAssembly: %w", err)
	}
	code, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(code)
	name := hex.EncodeToString(sum[:])
	if have, err := os.Open(to); err == nil {
		z, err := gzip.NewReader(have)
		have.Close()
		if err == nil && z.Comment == name {
			return nil
		}
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	z.Comment = name
	if _, err := z.Write(code); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return write(to, packed.Bytes())
}

// write writes a file unless it has that content already.
func write(name string, content []byte) error {
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, content) {
		return nil
	}
	return os.WriteFile(name, content, 0o644)
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(out)), err
}

// abs is a path's absolute form. It fails only if the working directory is gone.
func abs(name string) string {
	full, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	return full
}
