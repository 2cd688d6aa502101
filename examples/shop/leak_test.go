package main

import (
	"os"
	"testing"

	"github.com/seed8ec063be/durable/internal/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Main(m.Run())) }
