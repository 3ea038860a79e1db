package webserver

import (
	"context"
	"net/http"
)

// Playground is a source for the pages that run in the browser and ask nothing. Entry is the page, with its state, at which a browser begins.
type Playground struct{ Entry string }

func (p Playground) entry() string { return p.Entry }

func (Playground) routes(func(string, http.HandlerFunc)) {}

func (Playground) run(context.Context) {}
