package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect/wireshark"
)

func TestWiresharkPrintsTheDissector(t *testing.T) {
	code, out, stderr := runFor(t, context.Background(), "wireshark")
	if code != exitOK || out != wireshark.Script || stderr != "" {
		t.Errorf("code %d, %d bytes, %q", code, len(out), stderr)
	}
}

func TestWiresharkInstalls(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".local/lib/wireshark/plugins")
	name := filepath.Join(dir, "dgrdma.lua")
	for _, step := range []struct {
		before string // what the file is changed to, if not ""
		args   string
		code   int
		says   string
		after  string
	}{
		{"", "--install", exitOK, "wrote " + name, wireshark.Script},
		{"", "--install", exitOK, "already", wireshark.Script},
		{"-- another", "--install", exitError, "--force replaces it", "-- another"},
		{"", "--install --force", exitOK, "wrote " + name, wireshark.Script},
	} {
		if step.before != "" {
			if err := os.WriteFile(name, []byte(step.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, out, stderr := runFor(t, context.Background(), append([]string{"wireshark"}, strings.Fields(step.args)...)...)
		if code != step.code || out != "" || !strings.Contains(stderr, step.says) {
			t.Errorf("%+v: code %d, %q, %q", step, code, out, stderr)
		}
		got, err := os.ReadFile(name)
		if err != nil || string(got) != step.after {
			t.Errorf("%+v: %d bytes, %v", step, len(got), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%+v: the folder has %v, %v", step, left, err)
		}
	}
}

func TestWiresharkCannotInstall(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".local"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"wireshark", "--install"}, {"wireshark", "--install", "--force"}} {
		if code, _, stderr := runFor(t, context.Background(), args...); code != exitError || !strings.Contains(stderr, "not a directory") {
			t.Errorf("%v: code %d, %q", args, code, stderr)
		}
	}
	t.Setenv("HOME", "")
	if code, _, stderr := runFor(t, context.Background(), "wireshark", "--install"); code != exitError || !strings.Contains(stderr, "where to install") {
		t.Errorf("without a home: code %d, %q", code, stderr)
	}
}
