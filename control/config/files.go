package config

// Files are the paths that the gateway reads again at a reload: the configuration, and the files that it names.
func (c *Config) Files() (all []string) {
	add := func(paths ...string) {
		for _, path := range paths {
			if path != "" {
				all = append(all, path)
			}
		}
	}
	add(c.File.Name)
	if w := c.Management.Web; w != nil {
		add(w.Certificate, w.Key, w.TokenFile)
	}
	if c.BGP != nil {
		for i := range c.BGP.Peers {
			add(c.BGP.Peers[i].PasswordFile)
		}
	}
	if f := c.Fleet; f != nil {
		add(f.Key)
		if f.TLS != nil {
			add(f.TLS.CA, f.TLS.Cert, f.TLS.Key)
		}
	}
	return all
}
