"""What the scenarios are told with: Larder itself, scripted origins, strict clients, real servers, a clock."""
