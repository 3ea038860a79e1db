// Package web has the page, embedded: the playground, which runs the simulator as WebAssembly, and the view of a running gateway. tools/web builds it from
// src and wasm into dist; docs/web.md describes it.
package web

import (
	"errors"
	"io/fs"
	"net/http"
)

// ErrMissing is the error of a binary without the page.
var ErrMissing = errors.New(missing)

// Files returns the built page: index.html is the playground, live.html the live view.
func Files() (fs.FS, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, ErrMissing
	}
	return files, nil
}

// trustedTypes makes the browser refuse text where it would become a script or markup. The one exception is the address of the worker thread.
const trustedTypes = "; require-trusted-types-for 'script'; trusted-types cnpgate"

// Policy is the Content-Security-Policy of every answer: no inline script, nothing from elsewhere. WebAssembly is the simulator.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'" + trustedTypes

// Handler serves the files of the page with its headers.
func Handler(files fs.FS) http.Handler {
	static := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetHeaders(w.Header())
		static.ServeHTTP(w, r)
	})
}

// SetHeaders sets the headers that each answer has, also one that isn't a file.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
}
