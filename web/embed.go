//go:build !noweb

package web

import "embed"

//go:embed dist
var dist embed.FS

// missing says why a binary has no page.
const missing = "this cnpgate was built without its page: scripts/build bundles and embeds it, a plain 'go build' doesn't"
