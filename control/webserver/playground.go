package webserver

import (
	"context"
	"net/http"
)

// Playground is a source for the pages that run in the browser and ask nothing.
type Playground struct{}

func (Playground) routes(func(string, http.HandlerFunc)) {}

func (Playground) run(context.Context) {}
