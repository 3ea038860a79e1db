package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
)

// operators is the group whose members may use the socket of the API. The package makes it.
const operators = "cnpgate"

// joinOperators makes the files and sockets of a process of root belong to the operators, if there is such a group and the socket's directory doesn't do that: the unit's
// does, as Group= would refuse to start the gateway without the group.
func joinOperators(socket string, log zerolog.Logger) {
	if os.Geteuid() != 0 {
		return
	}
	group := groupOf("/etc/group", operators)
	if group < 0 {
		log.Info().Msg("There is no group cnpgate, so only root may use the API.")
		return
	}
	if givesGroup(filepath.Dir(socket), group) {
		return
	}
	if err := syscall.Setegid(group); err != nil {
		log.Warn().Err(err).Msg("The process can't join the group cnpgate, so only root may use the API. Give it CAP_SETGID.")
	}
}

// givesGroup reports whether what is made in a directory belongs to a group.
func givesGroup(directory string, group int) bool {
	info, err := os.Stat(directory)
	if err != nil || info.Mode()&os.ModeSetgid == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Gid) == group
}

// groupOf is the ID of a group by a file such as /etc/group (group(5)), -1 if it isn't there. Other sources of groups may be hosts that don't answer.
func groupOf(file, name string) int {
	f, err := os.Open(file)
	if err != nil {
		return -1
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && fields[0] == name {
			if id, err := strconv.ParseUint(fields[2], 10, 31); err == nil {
				return int(id)
			}
		}
	}
	return -1
}
