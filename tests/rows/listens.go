package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The tables in /proc/PID/net of sockets that a server has: those of streams listen, the others receive.
var (
	streams = []string{"tcp", "tcp6"}
	sockets = append([]string{"udp", "udp6", "packet"}, streams...)
)

// listens waits until a server that does not say so has its sockets in the tables to which its client can talk.
func (g *rig) listens(p *process, tables []string) error {
	for deadline := time.Now().Add(patience); p.talkedTo(tables) < max(p.sockets, 1); time.Sleep(5 * time.Millisecond) {
		if p.dead() {
			return nil // its client fails, and says what the server said
		}
		if err := g.ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not listen", strings.Join(p.Args, " "))
		}
	}
	return nil
}

// talkedTo returns how many such sockets the program has.
func (p *process) talkedTo(tables []string) (n int) {
	proc := fmt.Sprintf("/proc/%d", p.Process.Pid)
	own := make(map[string]bool)
	files, _ := filepath.Glob(proc + "/fd/*")
	for _, f := range files {
		to, _ := os.Readlink(f)
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range tables {
		b, _ := os.ReadFile(proc + "/net/" + table)
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			inode := 9
			if table == "packet" {
				inode = 8
			}
			const state, listening = 3, "0A"
			if len(fields) > inode && own[fields[inode]] && (!strings.HasPrefix(table, "tcp") || fields[state] == listening) {
				n++
			}
		}
	}
	return n
}
