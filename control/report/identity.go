package report

import (
	"time"

	"github.com/cnpgate/cnpgate/control/config"
)

// Identity identifies the gateway of an answer or a report. A replay has no start time.
type Identity struct {
	Gateway    string     `json:"gateway" doc:"Name of the gateway in the configuration."`
	Version    string     `json:"version,omitempty" doc:"Version of the program: tag and commit."`
	StartTime  *time.Time `json:"start_time,omitempty" doc:"When the gateway started."`
	ConfigHash string     `json:"config_hash" doc:"SHA-256 of the configuration in force, hexadecimal."`
}

// Identify gives the identity of a gateway with a configuration, without version and start time.
func Identify(c *config.Config) Identity {
	return Identity{Gateway: c.Name, ConfigHash: c.File.Hash()}
}
