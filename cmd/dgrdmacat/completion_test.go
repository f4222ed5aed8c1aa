package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBashCompletes: where only some words fit, they are offered, and else files.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trace.pcap"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) == 0 {
		t.Fatal("no interfaces", err)
	}
	names := strings.Join(commandNames(), " ")
	for typed, want := range map[string]string{
		"":                        names + " help",
		"de":                      "demo decode",
		"completion ":             "bash zsh fish",
		"completion z":            "zsh",
		"help ":                   names + " help",
		"man re":                  "report",
		"nfs ":                    strings.Join(wordsAfter("nfs"), " "),
		"help nfs se":             "serve",
		"man nfs ser":             "serve",
		"nfs serve --squash ":     "root none all",
		"nfs serve --tc":          "--tcp-port",
		"nfs serve ":              "trace.pcap",
		"man --dir ":              "trace.pcap",
		"serve --profile ":        "native fpga opencpi opencpi2 opencpi-legacy",
		"bench --profile open":    "opencpi opencpi-legacy",
		"serve --accept ":         "any connected",
		"bench --verify ":         "full off sample",
		"bench --compare ":        "raw tcp tls",
		"decode --op a":           "atomic atomicwrite",
		"decode --op ":            "atomic atomicwrite cmpswap fetchadd flush immediate read rpc send terminate verify write",
		"rping --revision ":       "1 2",
		"bench --revision ":       "1 2",
		"url --dialect p":         "prefixed",
		"bench --to ":             "",
		"send --local t":          "",
		"rping --serve ":          "",
		"decode --op = ":          "atomic atomicwrite cmpswap fetchadd flush immediate read rpc send terminate verify write",
		"decode --op =":           "atomic atomicwrite cmpswap fetchadd flush immediate read rpc send terminate verify write",
		"decode --op = a":         "atomic atomicwrite",
		"bench --op = re":         "read",
		"serve --file = tr":       "trace.pcap",
		"decode -v -i lo":         "lo",
		"decode ":                 "trace.pcap",
		"serve --accept any --du": "--dump --dump-range",
		"bench --profile --gs":    "--gso",
	} {
		words := strings.Split("dgrdmacat "+typed, " ")
		script := bashCompletion() + "\nCOMP_WORDS=(\"$@\")\nCOMP_CWORD=$(($# - 1))\n_dgrdmacat\necho \"${COMPREPLY[*]}\"\n"
		c := exec.Command(bash, append([]string{"-c", script, "bash"}, words...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", typed, got, err, want)
		}
	}
}

// TestZshCompletes: at the first time, too, when it reads the file that it found by its name, and
// where the script was read before.
func TestZshCompletes(t *testing.T) {
	t.Parallel()
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
			t.Fatal("there is no zsh, which CI has to have")
		}
		t.Skip("there is no zsh")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"_dgrdmacat": zshCompletion(), "dgrdmacat": "#!/bin/sh\necho \"<$*>\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// A line is typed when what the one before it runs has printed its words, which have the only < there is.
	script := `zmodload zsh/zpty
zpty shell zsh -fi
zpty -w shell "$1"
shift
while (( $# )); do
  zpty -w shell "dgrdmacat $1"$'\t'
  until [[ $line == *"$2"* ]]; do
    zpty -r shell line || { echo "$1: not completed to $2"; exit 1 }
  done
  shift 2
done`
	for name, ready := range map[string]string{
		"found by its name": "fpath=(" + dir + " $fpath); autoload -U compinit && compinit -u -D",
		"read before":       "autoload -U compinit && compinit -u -D; source " + dir + "/_dgrdmacat",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, zsh, "-fc", script, "zsh", ready, "deco", "<decode>", "help deco", "<help decode>", "bench --verify sam", "<bench --verify sample>")
			c.Dir, c.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TERM=xterm")
			c.WaitDelay = time.Second
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s", zsh, err, out)
			}
		})
	}
}

// TestFishOffersWords: the same words in fish's own language.
func TestFishOffersWords(t *testing.T) {
	lines := strings.Split(fishCompletion(), "\n")
	for _, want := range []string{
		"complete -c dgrdmacat -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'",
		"complete -c dgrdmacat -n '__fish_seen_subcommand_from help' -f -a '" + strings.Join(commandNames(), " ") + "'",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %s", want)
		}
	}
	for _, want := range []string{
		"'__fish_seen_subcommand_from bench' -x -a 'full off sample' -l verify -d ",
		"'__fish_seen_subcommand_from bench' -x -a 'native fpga opencpi opencpi-legacy' -l profile -d ",
		"'__fish_seen_subcommand_from decode' -x -a '(ls /sys/class/net)' -s i -d ",
		"'__fish_seen_subcommand_from bench' -r -l seconds -d ",
		"'__fish_seen_subcommand_from nfs; and __fish_seen_subcommand_from serve' -x -a 'root none all' -l squash -d ",
		"'__fish_seen_subcommand_from serve; and not __fish_seen_subcommand_from nfs' -x -a 'any connected' -l accept -d ",
		"'__fish_seen_subcommand_from bench' -x -l to -d ",
	} {
		if !slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no line with %s", want)
		}
	}
}
