package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/inspect/wireshark"
)

var wiresharkCommand = command{
	name: "wireshark", summary: "print the dissector for Wireshark and tshark, or install it",
	about: `Prints a dissector in Lua that makes Wireshark and tshark understand DG/RDMA: every
field can be filtered for, and retransmissions, acknowledgements and transactions
are linked. With --install it is written to the folder for personal plugins,
~/.local/lib/wireshark/plugins, and is there when Wireshark is next started.

  dgrdmacat wireshark --install
  dgrdmacat wireshark > dgrdma.lua && tshark -X lua_script:dgrdma.lua -r trace.pcap
  tshark -2 -r trace.pcap -Y dgrdma.analysis.retransmission_of

On Ethernet frames are known by their type, over UDP by their looks; the
preferences dgrdma.ethertype and dgrdma.ports say otherwise.`,
	flags: func(fs *flag.FlagSet) action {
		install := fs.Bool("install", false, "write it to the folder for personal plugins")
		force := fs.Bool("force", false, "with --install: replace whatever has its name")
		return func(_ context.Context, std *stdio, _ []string) error {
			switch {
			case *install:
				return installDissector(std, *force)
			case *force:
				return badUsage("--force belongs to --install")
			}
			_, err := io.WriteString(std.out, wireshark.Script)
			return err
		}
	},
}

func installDissector(std *stdio, force bool) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("where to install: %w; redirect the output instead", err)
	}
	dir := filepath.Join(home, ".local", "lib", "wireshark", "plugins")
	name := filepath.Join(dir, "dgrdma.lua")
	switch old, err := os.ReadFile(name); {
	case err == nil && bytes.Equal(old, []byte(wireshark.Script)):
		fmt.Fprintf(std.err, "%s is this dissector already\n", text.Plain(name))
		return nil
	case err == nil && !force:
		return fmt.Errorf("%s is something else, or another version: --force replaces it", name)
	case err != nil && !os.IsNotExist(err) && !force:
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Wireshark may be starting at this moment: it must find all or nothing.
	if err := writeWholeText(name, wireshark.Script); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "wrote %s; Wireshark and tshark load it when they start\n", text.Plain(name))
	return nil
}
