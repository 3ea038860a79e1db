//go:build noweb

package web

import "embed"

var dist embed.FS

// missing says why a binary has no page.
const missing = "this cnpgate was built without its page (scripts/build --noweb); build it without --noweb"
