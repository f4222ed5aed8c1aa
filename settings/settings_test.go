package settings

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestTableIsWhole: each setting can be said somewhere, under a name that no other one
// has, and what it offers lies within its bounds.
func TestTableIsWhole(t *testing.T) {
	seen := make(map[string]*Setting)
	for _, s := range All {
		said := false
		for place, name := range map[string]string{"option": s.Option, "field": s.Field, "flag": s.Flag} {
			if name == "" {
				continue
			}
			said = true
			if seen[place+name] != nil {
				t.Errorf("two settings have the %s %s", place, name)
			}
			seen[place+name] = s
		}
		if !said || s.Means == "" || s.Value == "" {
			t.Errorf("%+v", s)
		}
		if s.Kind == Choice == (len(s.Words) == 0) && s != SockBuf {
			t.Errorf("%s: kind %d with the words %q", s.Means, s.Kind, s.Words)
		}
		if s.Default != 0 && !s.within(s.Default) {
			t.Errorf("%s: the default %d is out of bounds", s.Means, s.Default)
		}
		if OfOption(s.Option) != s && s.Option != "" {
			t.Errorf("%s is not found", s.Option)
		}
	}
	if OfOption("") != nil || OfOption("speed") != nil {
		t.Error("there is an option speed")
	}
}

type someConfig struct {
	Queue  int
	GiveUp time.Duration
	Window int
	ID     uint16
	Memory []byte
}

func TestComplete(t *testing.T) {
	c := someConfig{Window: 7}
	if err := Complete(&c); err != nil {
		t.Fatal(err)
	}
	if want := (someConfig{Queue: int(Queue.Default), GiveUp: 10 * time.Second, Window: 7}); !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, want %+v", c, want)
	}
	for _, c := range []struct {
		config someConfig
		says   string
	}{
		{someConfig{Queue: -1}, "Queue in the configuration is -1, need 1 to 1048576"},
		{someConfig{Queue: 1<<20 + 1}, "need 1 to 1048576"},
		{someConfig{GiveUp: time.Nanosecond}, "GiveUp in the configuration is 1ns, need 1ms or more"},
		{someConfig{GiveUp: -time.Second}, "GiveUp in the configuration is -1s, need 1ms or more"},
		{someConfig{Window: 1 << 14}, "Window in the configuration is 16384, need 1 to 16383"},
	} {
		if err := Complete(&c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want ...%s", c.config, err, c.says)
		}
	}
}
