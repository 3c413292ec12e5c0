"""What is wrong between the laptop and a kernel: checks as pure judgements over facts."""
