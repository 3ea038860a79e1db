package main

import (
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
)

// followed is a configuration whose file may change while a gateway stands by.
type followed struct {
	cfg  *config.Config // that was read last
	load func() (*config.Config, error)
	log  zerolog.Logger
	at   time.Time   // of the last look at the file
	file os.FileInfo // as it was then
}

// changed reads the file again if it is another one, and returns the new configuration, nil if there is none. If the file has a mistake now, the
// configuration stays.
func (f *followed) changed() *config.Config {
	f.at = time.Now()
	info, err := os.Stat(f.cfg.File.Name)
	if err != nil || !info.Mode().IsRegular() ||
		f.file != nil && os.SameFile(f.file, info) && info.ModTime().Equal(f.file.ModTime()) && info.Size() == f.file.Size() {
		return nil
	}
	f.file = info
	next, err := f.load()
	switch {
	case err != nil:
		f.log.Error().Err(err).Msg("The configuration file has changed and can't be used. The gateway uses the one that it read before.")
		return nil
	case next.File.Hash() == f.cfg.File.Hash():
		return nil
	}
	logWarnings(next, f.log)
	return next
}
